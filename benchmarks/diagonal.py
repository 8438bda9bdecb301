"""Does a model need its diagonal? Dense, without the diagonal, and with as many entries dropped at random.

Each variant is first adapted by the same number of MLM steps under its pattern (the paper pre-trains under each), then
fine-tuned; beside it stands the score of fine-tuning alone. Random drops are drawn anew for each repetition, 128
entries a head. Takes hours on real data; every step is a run folder under --out, and the same command goes on.

    python benchmarks/diagonal.py --data DIR --corpus CORPUS --out DIR --model BASE --steps 60 \
        --max-rows 2000 --epochs 2 --task-batch-size 16 --learning-rate 1e-4
"""

import argparse
import contextlib
import io
import json
import os
import tempfile
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

from sparsebert import patterns
from sparsebert.tasks import TASKS

LENGTH = 128
NUM_DROPPED = 128  # entries a head: as many as the diagonal has


def command(*words: object) -> None:
    """Run a sparsebert command in this process, its words to nobody."""
    from sparsebert.cli import app

    with contextlib.redirect_stdout(io.StringIO()):
        app([str(word) for word in words], standalone_mode=False)


def variants(heads: int, repetitions: int) -> dict[str, list[patterns.Pattern | None]]:
    """Name to the pattern of each repetition."""
    full = patterns.full(LENGTH, heads)
    return {
        "dense": [None] * repetitions,
        "no diagonal": [full.without_diagonal()] * repetitions,
        "random drop": [full.random_drop(NUM_DROPPED, seed=seed) for seed in range(repetitions)],
    }


def adapted(pattern: Path | None, seed: int, out: Path, arguments: argparse.Namespace) -> Path:
    """The run folder of the model after its MLM steps."""
    if not (out / "result.json").is_file():
        options = [] if pattern is None else ["--pattern", pattern]
        size = ["--steps", arguments.steps, "--length", LENGTH, "--batch-size", arguments.batch_size]
        given = ["--model", arguments.model, "--corpus", arguments.corpus, "--seed", seed]
        command("pretrain", *given, *size, *options, "--out", out)
    return out


def score(
    task: str, model: str | Path, pattern: Path | None, seed: int, out: Path, arguments: argparse.Namespace
) -> float:
    if not (out / "result.json").is_file():
        options: list[object] = ["--learning-rate", arguments.learning_rate, "--length", LENGTH, "--seed", seed]
        options += ["--max-rows", arguments.max_rows] if arguments.max_rows else []
        options += ["--epochs", arguments.epochs] if arguments.epochs else []
        options += ["--batch-size", arguments.task_batch_size] if arguments.task_batch_size else []
        options += [] if pattern is None else ["--pattern", pattern]
        command("finetune", task, "--data", arguments.data, "--model", model, *options, "--out", out)
    return float(json.loads((out / "result.json").read_text())["score"])


def study(arguments: argparse.Namespace) -> None:
    out, heads = Path(arguments.out), _heads(arguments.model)
    found: dict[tuple[str, str, str], list[float]] = {}
    chosen = variants(heads, arguments.repetitions)
    # Repetition by repetition, so that a table over what is done so far is fair to every variant.
    for seed in range(arguments.repetitions):
        for name, held in chosen.items():
            pattern = _saved(held[seed], out / "patterns" / f"{name}-{seed}.safetensors")
            label = name.replace(" ", "-")
            base = adapted(pattern, seed, out / "adapted" / f"{label}-{seed}", arguments)
            for task in arguments.tasks:
                run = out / "tasks" / task
                for way, model in (("adapted", base), ("fine-tuned only", arguments.model)):
                    folder = run / f"{label}-{way.replace(' ', '-')}-{seed}"
                    value = score(task, model, pattern, seed, folder, arguments)
                    found.setdefault((name, way, task), []).append(value)
        _print(found, list(chosen), arguments.tasks, seed + 1)


def _heads(model: str) -> int:
    from sparsebert.model import load_model

    return int(load_model(model, vocab_size=100).config.num_attention_heads)


def _saved(pattern: patterns.Pattern | None, path: Path) -> Path | None:
    if pattern is None:
        return None
    pattern.save(path)
    return path


def _print(found: dict[Any, list[float]], names: list[str], tasks: list[str], repetitions: int) -> None:
    print(f"\n{repetitions} repetitions, mean ± sample deviation of the dev score")
    columns = [f"{TASKS[task].title}, {way}" for task in tasks for way in ("adapted", "fine-tuned only")]
    print(f"| variant | {' | '.join(columns)} |")
    print("|---" * (len(columns) + 1) + "|")
    for name in names:
        cells = []
        for task in tasks:
            for way in ("adapted", "fine-tuned only"):
                values = found[name, way, task]
                spread = f" ± {stdev(values):.1f}" if len(values) > 1 else ""
                cells.append(f"{fmean(values):.1f}{spread}")
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="builtin:tasks")
    parser.add_argument("--corpus", help="made by sparsebert prepare; the built-in text without it")
    parser.add_argument("--out")
    parser.add_argument("--model", default="minilm")
    parser.add_argument("--tasks", nargs="+", default=["rte", "mrpc", "cola", "stsb"])
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--steps", type=int, default=2, help="MLM steps of every adaptation")
    parser.add_argument("--batch-size", type=int, default=16, help="of the MLM steps")
    parser.add_argument("--learning-rate", type=float, default=5e-5, help="of fine-tuning")
    parser.add_argument("--task-batch-size", type=int, help="of fine-tuning; as the task has it without this")
    parser.add_argument("--epochs", type=float, help="of fine-tuning; as the task has it without this")
    parser.add_argument("--max-rows", type=int, help="of a task's training rows; all without this")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        arguments.out = arguments.out or folder
        if arguments.corpus is None:
            arguments.corpus = str(Path(arguments.out) / "corpus")
            command("prepare", "builtin:python-docs", "--model", arguments.model, "--out", arguments.corpus)
        study(arguments)


if __name__ == "__main__":
    main()
