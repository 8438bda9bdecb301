"""What does a fine-tuned task lose under a pattern? Six tasks of GLUE, dense and sparse, under the same settings.

    python benchmarks/task_scores.py --data DATA --pattern found/pattern.safetensors --out OUT
    python benchmarks/task_scores.py --out OUT --table

DATA holds the official folders (CoLA, STS-B, MRPC ...). --pattern is a file that `sparsebert search` left, with its
ranking: budgets are picked from it (`--keys-pattern`: another one for the budgets of keys, which are counted at 512
tokens; `--entries-pattern`: one of single entries, taken as it is). All training rows, of SST-2 and QNLI 10,000; three
epochs, one rate for all. Every run is one of the package's own in a folder below OUT and goes on where it was; scores
are added to OUT/scores.jsonl as they come, what is asked first at first, so the script may be ended at any time.
"""

import argparse
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

import torch

from sparsebert import Pattern, patterns
from sparsebert.progress import for_this_terminal
from sparsebert.runs import FinetuneRun, TaskSearchRun

LENGTH, COUNTED_AT = 128, 512  # tokens of an input; of a row at which keys a query are counted
TASKS: dict[str, int | None] = {"cola": None, "rte": None, "mrpc": None, "stsb": None, "sst2": 10_000, "qnli": 10_000}
Source = Literal["dense", "learned", "entries", "window", "task", "task entries"]
WORDS = {
    "dense": "dense",
    "learned": "learned on text, a pattern a layer",
    "entries": "single entries learned on text, a pattern a layer",
    "window": "window + border",
    "task": "learned on the task, a pattern a layer",
    "task entries": "learned on the task, single entries",
}


@dataclass(frozen=True)
class Condition:
    """How a task is trained."""

    source: Source
    pooling: str = "mean"
    keys: int | None = None  # a query on average, at 512 tokens
    sparsity: float | None = None  # at 128 tokens, instead
    anchor: str = "auto"
    taught: bool = False  # by the dense model of the task
    from_dense: bool = False  # begins with the weights of the dense model of the task

    @property
    def key(self) -> str:
        budget = f"{self.keys}-keys" if self.keys else f"{100 * (self.sparsity or 0):g}%"
        words = [self.source.replace(" ", "-"), budget, self.pooling, self.anchor]
        return "_".join([*words, *["taught"] * self.taught, *["from-dense"] * self.from_dense])

    @property
    def words(self) -> str:
        extra = [f"last row and column at the last {self.anchor}"] * (self.anchor != "auto")
        extra += ["dense teacher"] * self.taught + ["from the dense model's weights"] * self.from_dense
        return ", ".join([WORDS[self.source], *extra])


def conditions() -> Iterator[tuple[Condition, tuple[str, ...]]]:
    """Each with its tasks; what is asked first at first. A condition may come twice."""
    every, pairs = tuple(TASKS), ("stsb", "rte", "mrpc")
    small = ("cola", "rte", "mrpc", "stsb")
    ninety = Condition("learned", sparsity=0.9)
    taught: dict[str, Any] = {"taught": True, "from_dense": True}
    of_task = Condition("task", sparsity=0.9, **taught)
    yield Condition("dense"), every
    yield Condition("learned", keys=64, **taught), every
    yield Condition("dense", **taught), every  # what going on brings by itself
    yield of_task, every
    yield Condition("window", keys=64, **taught), every
    yield Condition("learned", keys=64), small
    yield ninety, small
    yield replace(ninety, source="entries"), small
    for keys in (32, 128):
        for source in ("learned", "window"):
            yield Condition(source, keys=keys, **taught), every
    yield Condition("window", keys=64), small
    yield replace(ninety, **taught), small
    yield replace(ninety, source="entries", **taught), small
    yield Condition("window", sparsity=0.9, **taught), small
    yield replace(of_task, source="task entries"), pairs
    yield replace(ninety, anchor="token", **taught), ("stsb",)
    for condition in (Condition("dense", pooling="cls"), Condition("learned", keys=64, pooling="cls")):
        yield condition, small
    for condition in (Condition("learned", keys=64), ninety):
        yield condition, every
    for changes in ({"taught": True}, {"anchor": "token"}, {"anchor": "token", **taught}):
        yield replace(ninety, **changes), (*pairs, "cola")
    yield Condition("window", sparsity=0.9), every
    for keys in (64, 32, 128):
        for source in ("learned", "window"):
            yield Condition(source, keys=keys), every
    for condition in (Condition("dense"), Condition("learned", keys=64), ninety):
        yield replace(condition, pooling="cls"), every


class Lab:
    """Makes the runs of conditions."""

    def __init__(self, asked: argparse.Namespace) -> None:
        self.asked = asked

    @cached_property
    def by_sparsity(self) -> Pattern:
        return Pattern.load(self.asked.pattern)

    @cached_property
    def by_keys(self) -> Pattern:
        keys = Pattern.load(self.asked.keys_pattern or self.asked.pattern)
        return keys.at(max(keys.length, COUNTED_AT))

    def settings(self, condition: Condition, task: str) -> dict[str, Any]:
        given = {"task": task, "data": str(self.asked.data), "length": LENGTH, "max_rows": TASKS[task]}
        given |= {"learning_rate": self.asked.rate, "num_epochs": self.asked.epochs, "seed": self.asked.seed}
        given |= {"precision": self.asked.precision, "checkpoint_every": 1_000_000, "pooling": condition.pooling}
        dense = str(self.folder(Condition("dense", pooling=condition.pooling), task))
        given |= {"model": dense if condition.from_dense else self.asked.model, "anchor": condition.anchor}
        return given | ({"teacher": dense} if condition.taught else {})

    def folder(self, condition: Condition, task: str) -> Path:
        out: Path = self.asked.out
        return out / f"{task}_{condition.key}_{self.asked.seed}"

    def pattern(self, condition: Condition, task: str) -> Pattern | None:
        if condition.source == "dense":
            return None
        if condition.source == "window":
            if condition.keys is None:
                return patterns.window_border(LENGTH, sparsity=condition.sparsity)
            return patterns.window_border(self.by_keys.length, keys=condition.keys)
        if condition.source == "entries":
            return Pattern.load(self.asked.entries_pattern)
        if condition.source == "learned" and condition.keys is None:
            return self.by_sparsity.at_sparsity(float(condition.sparsity or 0))
        if condition.source == "learned":
            return self.by_keys.at_sparsity(1.0 - float(condition.keys or 0) / self.by_keys.length)
        return self.searched(condition, task)

    def searched(self, condition: Condition, task: str) -> Pattern:
        """A pattern for the task, learned by the dense model of it."""
        folder = self.asked.out / f"search_{self.folder(condition, task).name}"
        if not (folder / "pattern.safetensors").is_file():
            kind = "structured" if condition.source == "task" else "unstructured"
            given = self.settings(condition, task) | {"kind": kind, "sparsity": condition.sparsity, "layers": "own"}
            run = TaskSearchRun.read({**given, "preset": "distilled", "saves_model": False})
            run.make(folder, for_this_terminal(folder.name))
            shutil.rmtree(folder / "checkpoints", ignore_errors=True)
        return Pattern.load(folder / "pattern.safetensors")

    def reaches(self, condition: Condition) -> bool:
        """Whether there is such a pattern at all."""
        if condition.source == "entries" and self.asked.entries_pattern is None:
            return False
        return condition.keys is None or condition.keys < self.by_keys.length

    def scored(self, condition: Condition, task: str) -> dict[str, Any]:
        pattern, folder = self.pattern(condition, task), self.folder(condition, task)
        given = self.settings(condition, task) | {"saves_model": condition.source == "dense"}
        result = FinetuneRun.read({**given, "pattern": pattern}).make(folder, for_this_terminal(folder.name))
        shutil.rmtree(folder / "checkpoints", ignore_errors=True)  # as large as three models
        at_128 = 0.0 if pattern is None else pattern.at(LENGTH).sparsity if pattern.rule else pattern.sparsity
        return {"score": result.fields["score"], "sparsity": at_128, "rows": result.fields["rows"]}


def run(asked: argparse.Namespace) -> None:
    torch.set_num_threads(asked.threads)
    asked.out.mkdir(parents=True, exist_ok=True)
    lab, scores = Lab(asked), asked.out / "scores.jsonl"
    done = {(line["key"], line["task"], line["seed"]) for line in read(scores)}
    for condition, tasks in conditions():
        if condition.source not in asked.sources or not lab.reaches(condition):
            continue
        for task in tasks:
            name = condition.key, task, asked.seed
            if name in done or task not in asked.tasks:
                continue
            done.add(name)
            about = {"key": condition.key, "words": condition.words, "task": task, "seed": asked.seed}
            about |= {"keys": condition.keys, "pooling": condition.pooling}
            line = about | lab.scored(condition, task)
            with scores.open("a") as file:
                file.write(json.dumps(line) + "\n")
            print(condition.key, task, f"{line['score']:.2f}", flush=True)


def read(scores: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in scores.read_text().splitlines()] if scores.exists() else []


def table(lines: list[dict[str, Any]]) -> str:
    """A row a condition, a column a task; means over seeds. The mean of six only where there are six."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for line in lines:
        rows.setdefault(line["key"], []).append(line)
    names = " | ".join(TASKS)
    text = [f"| pattern | head reads | keys | sparsity at {LENGTH} | {names} | mean of six |"]
    text.append("|---|" + "---|" * (4 + len(TASKS)))
    for found in rows.values():
        first = found[0]
        of_tasks = {task: [line["score"] for line in found if line["task"] == task] for task in TASKS}
        means = {task: fmean(values) for task, values in of_tasks.items() if values}
        cells = [f"{means[task]:.1f}" if task in means else "" for task in TASKS]
        whole = f"{fmean(means.values()):.1f}" if len(means) == len(TASKS) else ""
        about = [first["words"], first["pooling"], str(first["keys"] or ""), f"{100 * first['sparsity']:.1f} %"]
        text.append("| " + " | ".join([*about, *cells, whole]) + " |")
    return "\n".join(text) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--pattern", type=Path, help="learned at 128 tokens, with its ranking")
    parser.add_argument("--keys-pattern", type=Path, help="for budgets of keys; --pattern unless it is given")
    parser.add_argument("--entries-pattern", type=Path, help="90 %% sparse, of single entries")
    parser.add_argument("--model", default="minilm")
    parser.add_argument("--tasks", nargs="+", choices=list(TASKS), default=list(TASKS))
    parser.add_argument("--sources", nargs="+", choices=list(WORDS), default=list(WORDS), help="of patterns")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rate", type=float, default=1e-4)
    parser.add_argument("--epochs", type=float, default=3)
    parser.add_argument("--precision", choices=["float32", "bfloat16"], default="bfloat16")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--table", action="store_true", help="print what there is, train nothing")
    asked = parser.parse_args()
    if asked.data is not None:
        if asked.pattern is None and not {"dense", "entries"}.issuperset(asked.sources):
            parser.error("--pattern is missing, which all sources but dense and entries need")
        run(asked)
    if asked.table:
        print(table(read(asked.out / "scores.jsonl")))


if __name__ == "__main__":
    main()
