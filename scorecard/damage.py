"""R7, R8: files whose bytes are no longer those that were written."""

import random
import shutil
from collections.abc import Callable
from pathlib import Path

from scorecard import commands
from scorecard.commands import must_run
from scorecard.row import Row, Trial, require
from sparsebert import gates
from sparsebert.errors import SparseBertError
from sparsebert.patterns import Pattern
from sparsebert.text import TokenStore
from sparsebert.training.checkpoints import Checkpoints

KINDS = ("checkpoint", "pattern", "gate", "store")
_BLOCK = 4096


def set_up(shared: Path) -> None:
    corpus = commands.make_corpus(shared)
    must_run(commands.search(corpus, shared / "run", steps=3), shared / "log")


def _files(kind: str, root: Path) -> list[Path]:
    """The files that hold one kind of thing."""
    if kind == "pattern":
        return [root / "run" / "pattern.safetensors"]
    if kind == "gate":
        return [root / "run" / "gate.safetensors"]
    folder = root / "run" / "checkpoints" if kind == "checkpoint" else root / "corpus"
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _is_refused(kind: str, root: Path) -> bool:
    """Whether whoever reads it says that it is not what was written."""
    try:
        if kind == "checkpoint":
            return Checkpoints(root / "run" / "checkpoints", keep=2).newest() == 0
        if kind == "pattern":
            Pattern.load(root / "run" / "pattern.safetensors")
        elif kind == "gate":
            gates.load(root / "run" / "gate.safetensors")
        else:
            TokenStore.open(root / "corpus").verify()
    except SparseBertError:
        return True
    return False


def flip(data: bytearray, draw: random.Random) -> str:
    bit = draw.randrange(len(data) * 8)
    data[bit // 8] ^= 1 << bit % 8
    return f"bit {bit} flipped"


def truncate(data: bytearray, draw: random.Random) -> str:
    size = len(data)
    # Every second cut is a short one: the last few bytes are the easiest to lose unnoticed.
    del data[draw.randrange(size) if draw.random() < 0.5 else size - draw.randint(1, min(16, size)) :]
    return f"cut from {size} to {len(data)} bytes"


def zero(data: bytearray, draw: random.Random) -> str:
    start = draw.randrange(len(data)) // _BLOCK * _BLOCK
    stop = min(start + _BLOCK, len(data))
    if not any(data[start:stop]):
        return ""
    data[start:stop] = bytes(stop - start)
    return f"bytes {start} to {stop} zeroed"


def _damaged(damage: Callable[[bytearray, random.Random], str]) -> Callable[[Trial], None]:
    def run(trial: Trial) -> None:
        kind, draw = KINDS[trial.number % len(KINDS)], random.Random(trial.number)
        shutil.copytree(trial.shared / "run", trial.folder / "run")
        shutil.copytree(trial.shared / "corpus", trial.folder / "corpus")
        what = ""
        while not what:
            path = draw.choice(_files(kind, trial.folder))
            data = bytearray(path.read_bytes())
            what = damage(data, draw)
        path.write_bytes(data)
        require(_is_refused(kind, trial.folder), f"{kind}: {path.name}, {what}, went unnoticed")

    return run


ROWS = [
    Row(
        "R7",
        "one bit flipped anywhere in a checkpoint, pattern file, gate file or token store",
        "1,000/1,000 noticed",
        1000,
        _damaged(flip),
        set_up,
        fast=range(40),
        chunk=100,
    ),
    Row(
        "R8",
        "the same files truncated, or 4 KiB of them zeroed: 500 each",
        "all noticed",
        1000,
        lambda trial: _damaged(truncate if trial.number < 500 else zero)(trial),
        set_up,
        fast=range(490, 510),
        chunk=100,
    ),
]
