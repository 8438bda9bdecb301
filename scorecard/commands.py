"""The commands that are disturbed: a search and a fine-tuning, small enough to be run some hundred times."""

import contextlib
import hashlib
import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from scorecard.row import FailedTrialError
from sparsebert.cli import main
from sparsebert.text import prepare_corpus
from tests.faults.processes import ended

KINDS = ("search", "finetune")
# Everything that an interruption must leave as it is; what a run draws and times is made anew.
_FREE = {"timing.json", ".lock"}
_WORDS = ("cat", "dog", "hill", "river", "stone", "town", "boat", "door", "rain", "day", "old", "red", "small", "sat")


def write_text(path: Path, num_documents: int = 60, seed: int = 0) -> None:
    """A corpus of made-up sentences."""
    draw = random.Random(seed)

    def sentence() -> str:
        return " ".join(draw.choices(_WORDS, k=draw.randint(4, 12))).capitalize() + "."

    documents = ["\n".join(sentence() for _ in range(draw.randint(3, 8))) for _ in range(num_documents)]
    path.write_text("\n\n".join(documents) + "\n")


def make_corpus(folder: Path) -> Path:
    write_text(folder / "text.txt")
    prepare_corpus(
        [str(folder / "text.txt")], folder / "corpus", model="scratch:tiny", train_vocab=150, held_out=0.2, workers=1
    )
    return folder / "corpus"


def search(corpus: Path, out: Path, *more: object, steps: int = 12, saves: int = 3) -> list[object]:
    common = ["--model", "scratch:tiny", "--corpus", corpus, "--steps", steps, "--length", 24, "--batch-size", 4]
    usual = _settings({"checkpoint_every": saves, "num_held_out": 1, "rate": 0.1}, more)
    return ["search", *common, "--sparsity", 0.7, *usual, "--out", out, *more]


def finetune(out: Path, *more: object, saves: int = 3) -> list[object]:
    common = ["--data", "builtin:tasks", "--model", "scratch:tiny", "--max-rows", 48, "--max-dev-rows", 8]
    usual = ["--length", 24, "--batch-size", 4, "--epochs", 1, *_settings({"checkpoint_every": saves}, more)]
    return ["finetune", "sst2", *common, "--pattern", "star", *usual, "--out", out, *more]


def _settings(usual: dict[str, object], more: tuple[object, ...]) -> list[object]:
    """The usual settings, but for those that are given anew."""
    given = {str(word).partition("=")[0] for word in more}
    return [word for name, value in usual.items() if name not in given for word in ("--set", f"{name}={value}")]


def start(arguments: list[object], log: Path, prepare: Callable[[], None] | None = None) -> int:
    """A child that runs a command of sparsebert, after something else; its id."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        _to_file(log)
        if prepare is not None:
            prepare()
        sys.argv = ["sparsebert", *map(str, arguments)]
        main()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException:
        os.write(2, traceback.format_exc().encode())
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _to_file(log: Path) -> None:
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for stream in (1, 2):
        os.dup2(descriptor, stream)


def run(arguments: list[object], log: Path, prepare: Callable[[], None] | None = None) -> int:
    return ended(start(arguments, log, prepare))


def must_run(arguments: list[object], log: Path) -> None:
    code = run(arguments, log)
    if code != 0:
        raise FailedTrialError(f"exit code {code} of {' '.join(map(str, arguments))}: {log.read_text()[-800:]}")


def kill_after(arguments: list[object], seconds: float, log: Path, number: int = signal.SIGKILL) -> int:
    """The exit code of a command that gets a signal after a while; 0 where it was quicker."""
    child = start(arguments, log)
    time.sleep(seconds)
    os.kill(child, number)
    return ended(child)


def outcome(folder: Path) -> dict[str, str]:
    """sha256 of every file of a finished run whose bytes are promised."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in _FREE
    }


def difference(one: dict[str, str], other: dict[str, str]) -> str:
    """The names of files that differ; empty: none."""
    return ", ".join(sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name)))
