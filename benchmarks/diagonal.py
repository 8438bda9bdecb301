"""Does a model need its diagonal? Dense, without the diagonal, and with as many entries dropped at random.

Scores with adaptation (the paper pre-trains under each pattern) are those of a finished `sparsebert study diagonal`.
Beside them stands fine-tuning alone: the same tasks, rows, settings and seeds under the same patterns, straight from
the study's base. Repetition k has seed k and draw k of the random drop. Every run is a folder under --out, and the
same command goes on; the table is printed after every repetition.

    sparsebert study diagonal --scale laptop --corpus CORPUS --data DIR --out STUDY
    python benchmarks/diagonal.py STUDY --data DIR --out DIR
"""

import argparse
import contextlib
import io
import os
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

from sparsebert.files import read_json
from sparsebert.patterns import Pattern
from sparsebert.studies.results import Study, load_study
from sparsebert.studies.stated_patterns import stated_pattern
from sparsebert.tasks import TASKS

VARIANTS = ("dense", "no-diagonal", "random-drop")
WAYS = ("adapted", "fine-tuned only")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", type=Path)
    parser.add_argument("--data", required=True, help="folder that holds the official task folders")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--tasks", nargs="+", help="the study's own without this")
    parser.add_argument("--repetitions", type=int, help="as many as the study has seeds on tasks without this")
    given = parser.parse_args()
    study = load_study(given.study)
    sizes = study.base["sizes"]
    tasks = given.tasks or sizes["diagonal_tasks"]
    found: dict[tuple[str, str, str], list[float]] = {}
    for seed in range(given.repetitions or sizes["task_seeds"] or sizes["seeds"]):
        for task in tasks:
            for variant in VARIANTS:
                out = given.out / f"{task}-{variant}-{seed}"
                alone = fine_tuned_only(study, task, variant, seed, given.data, out)
                found.setdefault((variant, "fine-tuned only", task), []).append(alone)
                score = adapted(study, task, variant, seed)
                found.setdefault((variant, "adapted", task), []).extend([] if score is None else [score])
        print_table(found, tasks)


def adapted(study: Study, task: str, variant: str, seed: int) -> float | None:
    """The study's own score; None where that run is not finished."""
    draw = {"draw": seed} if variant == "random-drop" else {}
    runs = study.scored(study="diagonal", family=variant, task=task, seed=seed, **draw)
    return None if not runs else runs[0].score


def fine_tuned_only(study: Study, task: str, variant: str, seed: int, data: str, out: Path) -> float:
    """The score of the study's fine-tuning from its base, without any step under the pattern before."""
    if not (out / "result.json").is_file():
        base = next(study.finished("base"), None)
        if base is None:
            raise SystemExit(f"the base run of {study.folder} is not finished; run the study first")
        settings: Mapping[str, Any] = {"length": study.base["sizes"]["length"], **study.base["sizes"]["finetune"]}
        heads = int(read_json(base.path / "model" / "config.json")["num_attention_heads"])
        pattern = _pattern(variant, seed, int(settings["length"]), heads)
        chosen = {**settings, "precision": study.base["sizes"]["precision"], "seed": seed}
        words = ["finetune", task, "--data", data, "--model", str(base.path / "model"), "--out", str(out)]
        for name, value in chosen.items():
            words += _option(name, value)
        if pattern is not None:
            path = out.with_suffix(".safetensors")
            path.parent.mkdir(parents=True, exist_ok=True)
            pattern.save(path)
            words += ["--pattern", str(path)]
        _command(words)
    return float(read_json(out / "result.json")["score"])


def print_table(found: dict[tuple[str, str, str], list[float]], tasks: list[str]) -> None:
    print("\nmean ± sample deviation of the dev score (number of runs)")
    columns = [(task, way) for task in tasks for way in WAYS]
    print("| variant |", *(f"{TASKS[task].title}, {way} |" for task, way in columns))
    print("|---" * (len(columns) + 1) + "|")
    for variant in VARIANTS:
        print(f"| {variant} |", *(f"{_cell(found[variant, way, task])} |" for task, way in columns), flush=True)


def _cell(values: list[float]) -> str:
    if not values:
        return ""
    spread = f" ± {stdev(values):.1f}" if len(values) > 1 else ""
    return f"{fmean(values):.1f}{spread} ({len(values)})"


def _pattern(variant: str, seed: int, length: int, heads: int) -> Pattern | None:
    if variant == "dense":
        return None
    words = {"random_drop": seed} if variant == "random-drop" else {"name": "full", "drop_diagonal": True}
    return stated_pattern(words, length, heads)


def _option(name: str, value: Any) -> list[str]:
    """A setting as the command line takes it."""
    if name in ("stride", "precision"):
        return ["--set", f"{name}={value}"]
    return ["--epochs" if name == "num_epochs" else f"--{name.replace('_', '-')}", str(value)]


def _command(words: list[str]) -> None:
    """Run a sparsebert command in this process, its words to nobody."""
    from sparsebert.cli import app

    with contextlib.redirect_stdout(io.StringIO()):
        app(words, standalone_mode=False)


if __name__ == "__main__":
    main()
