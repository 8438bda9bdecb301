"""S3: every reader is handed what a mutator makes of good files; only the project's errors may come out."""

import random
import resource
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from scorecard import commands
from scorecard.row import FailedTrialError, Figures, Row, Trial, require
from sparsebert import gates
from sparsebert.errors import SparseBertError
from sparsebert.files import SEAL_KEY, canonical_json, read_json, sha256
from sparsebert.patterns import Pattern, star
from sparsebert.tasks.builtin import write_builtin
from sparsebert.tasks.files.reading import read_file
from sparsebert.tasks.folder import open_settings
from sparsebert.tasks.table import TASKS
from sparsebert.text import TokenStore
from sparsebert.text.blocks import Block
from sparsebert.text.documents import Complaints, documents
from sparsebert.text.vocabulary import read_tokenizer
from sparsebert.training.checkpoints import Checkpoints, RunState
from sparsebert.training.config import FitConfig
from sparsebert.training.run_folder import RunFolder

_EACH = 1000  # inputs in a trial
_MOST_MEMORY = 400 * 2**20  # bytes that a thousand inputs may add
_TOKENS = (
    b"\0", b"\xff", b"\xed\xa0\x80", b"NaN", b"Infinity", b"-1", b"1e999", b"9" * 5000, b"null", b"true", b"[]", b"{}",
    b'"', b"\\", b"\\ud800", b"\t", b"\n", b"\r\n", b",", b"[" * 2000, b"../", b"18446744073709551616", b"0.5", b"\x7f",
)  # fmt: skip


def set_up(shared: Path) -> None:
    torch.manual_seed(0)
    corpus = commands.make_corpus(shared)
    write_builtin(shared / "data")
    star(length=12).save(shared / "pattern.safetensors")
    gates.save(gates.Structured(12, 2, sparsity=0.5, steps=5), shared / "gate.safetensors")
    objective = torch.nn.Linear(3, 2)
    optimiser = torch.optim.AdamW(objective.parameters())
    objective(torch.ones(1, 3)).sum().backward()
    optimiser.step()
    Checkpoints(shared / "checkpoints", keep=1).save(RunState(step=1), objective, optimiser)
    RunFolder(shared / "run").folder.mkdir()
    run = RunFolder(shared / "run")
    run.begin(FitConfig(3), {"length": 12}, 1)
    run.record()
    (shared / "task").mkdir()
    settings = {"task": "rte", "length": 8, "stride": 0, "threshold": None, "vocabulary": ""}
    (shared / "task" / "task.json").write_text(canonical_json(settings))
    require(TokenStore.open(corpus).num_documents > 10, "the corpus is too small")


def mutate(data: bytes, draw: random.Random) -> bytes:
    """A few changes of the kinds that files suffer, and a few that people think of."""
    changed = bytearray(data)
    for _ in range(draw.choice((1, 1, 2, 4, 16))):
        at, kind = draw.randrange(len(changed) + 1), draw.randrange(6)
        if kind == 0 and changed:
            changed[at % len(changed)] ^= 1 << draw.randrange(8)
        elif kind == 1:
            changed[at:at] = draw.choice(_TOKENS)
        elif kind == 2:
            del changed[at : at + draw.choice((1, 2, 8, 100))]
        elif kind == 3:
            changed[at : at + draw.choice((1, 4, 8))] = draw.choice(_TOKENS)
        elif kind == 4:
            start = draw.randrange(len(changed) + 1)
            changed[at:at] = changed[start : start + draw.choice((1, 8, 64))]
        else:
            changed[at : at + 8] = draw.choice((0, 1, 2**31, 2**32 - 1, 2**62, 2**64 - 1)).to_bytes(8, "little")
    return bytes(changed)


def resealed(data: bytes) -> bytes:
    """The file with a right seal over its wrong contents, where it still has a place for one."""
    size = int.from_bytes(data[:8], "little")
    header = data[8 : 8 + size] if size < len(data) else b""
    at = header.find(b'\\"sha256\\":\\"')
    if SEAL_KEY.encode() not in header or at < 0:
        return data
    at += 8 + len(b'\\"sha256\\":\\"')
    blank = data[:at] + b"0" * 64 + data[at + 64 :]
    return data[:at] + sha256(blank).encode() + data[at + 64 :]


Reader = tuple[Callable[[Path], Path], Callable[[Path], Any], bool]  # the file, who reads it, whether it is sealed


def _rows_of(task: str) -> Callable[[Path], object]:
    return lambda root: read_file(_task_file(task)(root), TASKS[task], TASKS[task].train)


def _task_file(task: str) -> Callable[[Path], Path]:
    return lambda root: root / "data" / TASKS[task].folders[0] / TASKS[task].train.name


def _checkpoint(root: Path) -> None:
    Checkpoints(root / "checkpoints", keep=1).newest()


def _run_json(root: Path) -> None:
    RunFolder(root / "run").begin(FitConfig(3), {"length": 12}, 1)


def _documents(layout: str) -> Callable[[Path], object]:
    def read(root: Path) -> object:
        block = Block("text", layout, 1, (root / "text.txt").read_bytes(), 0)  # type: ignore[arg-type]
        return list(documents(block, Complaints("text", skip_bad=False)))

    return read


def _tokenizer(root: Path) -> object:
    path = root / "corpus" / "tokenizer.json"
    return read_tokenizer(path.read_bytes(), str(path)).encode("The old cat sat.")


READERS: dict[str, Reader] = {
    "pattern": (lambda root: root / "pattern.safetensors", lambda r: Pattern.load(r / "pattern.safetensors"), True),
    "gate": (lambda root: root / "gate.safetensors", lambda r: gates.load(r / "gate.safetensors"), True),
    "checkpoint weights": (lambda r: r / "checkpoints/step-00000001/objective.safetensors", _checkpoint, False),
    "checkpoint progress": (lambda r: r / "checkpoints/step-00000001/progress.json", _checkpoint, False),
    "checkpoint manifest": (lambda r: r / "checkpoints/step-00000001/manifest.json", _checkpoint, False),
    "run.json": (lambda root: root / "run" / "run.json", _run_json, False),
    "json": (lambda root: root / "run" / "run.json", lambda root: read_json(root / "run" / "run.json"), False),
    "tsv": (_task_file("rte"), _rows_of("rte"), False),
    "tsv of scores": (_task_file("stsb"), _rows_of("stsb"), False),
    "csv": (_task_file("swag"), _rows_of("swag"), False),
    "squad": (_task_file("squad2"), _rows_of("squad2"), False),
    "store manifest": (lambda r: r / "corpus/manifest.json", lambda r: TokenStore.open(r / "corpus").verify(), False),
    "store shard": (
        lambda root: root / "corpus/shards/00000.safetensors",
        lambda root: TokenStore.open(root / "corpus").verify(),
        True,
    ),
    "tokenizer": (lambda root: root / "corpus" / "tokenizer.json", _tokenizer, False),
    "text": (lambda root: root / "text.txt", _documents("text"), False),
    "jsonl": (lambda root: root / "text.txt", _documents("jsonl"), False),
    "task.json": (lambda root: root / "task" / "task.json", lambda root: open_settings(root / "task"), False),
}


def fuzzed(trial: Trial) -> Figures:
    name = list(READERS)[trial.number % len(READERS)]
    find, read, sealed = READERS[name]
    root, draw = trial.folder / "files", random.Random(trial.number)
    shutil.copytree(trial.shared, root)
    path = find(root)
    good, refused = path.read_bytes(), 0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for number in range(_EACH):
        data = mutate(good, draw)
        _put(path, resealed(data) if sealed and number % 2 else data)
        try:
            read(root)
        except SparseBertError:
            refused += 1
        except BaseException as error:
            bad = repr(data[:100])
            raise FailedTrialError(f"{name}, input {number}: {type(error).__name__}: {error} ({bad})") from error
        if name.startswith("checkpoint"):  # a refused one is set aside
            shutil.rmtree(root / "checkpoints")
            shutil.copytree(trial.shared / "checkpoints", root / "checkpoints")
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    require(grown < _MOST_MEMORY, f"{name}: {_EACH} inputs took {grown / 2**20:.0f} MiB")
    return {"mebibytes": grown / 2**20, "refused": refused}


def _put(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


ROWS = [
    Row(
        "S3",
        f"fuzzing of {len(READERS)} readers: patterns, gates, checkpoints, run.json, TSV, CSV, JSON, stores, text",
        "only the project's errors; memory bounded",
        102,
        fuzzed,
        set_up,
        unit="inputs",
        fast=(0, 5, 13),
        each=_EACH,
        words=lambda figures: (
            f"{sum(one['refused'] for one in figures) / (10 * len(figures)):.0f} % refused; "
            f"at most {max(one['mebibytes'] for one in figures):.0f} MiB for a thousand"
        ),
    )
]
