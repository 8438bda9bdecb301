"""S2: pattern files, archives and run folders whose contents are lies; nothing of them reaches the kernel."""

import gzip
import json
import os
import resource
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import zstandard

from scorecard import commands
from scorecard.commands import must_run, run
from scorecard.row import Figures, Row, Trial, require
from sparsebert import attend, patterns
from sparsebert.attention import sparse_indices, sparse_kernel, sparse_library
from sparsebert.errors import SparseBertError
from sparsebert.files import seal_tensors
from sparsebert.patterns import Pattern
from sparsebert.text import prepare_corpus

_MOST_MEMORY = 500 * 2**20
_KERNEL = Path(__file__).resolve().parents[1] / "csrc"

# Pattern files with a right seal over wrong contents


def _about(**changes: Any) -> dict[str, Any]:
    fields = {"kind": "pattern", "format": 1, "heads": 1, "length": 4, "anchor": "position", "rule": None}
    return fields | changes


def _rows(starts: Any, keys: Any, starts_type: Any = np.int64, keys_type: Any = np.int32) -> dict[str, np.ndarray]:
    return {"row_starts": np.array(starts, starts_type), "keys": np.array(keys, keys_type)}


_GOOD = _rows([[0, 1, 2, 3, 4]], [0, 1, 2, 3])
_DEEP: dict[str, Any] = {"builder": "star"}
for _ in range(300):
    _DEEP = {"operation": "without_diagonal", "of": [_DEEP]}

PATTERNS: dict[str, tuple[dict[str, np.ndarray], dict[str, Any]]] = {
    "negative key": (_rows([[0, 1, 2, 3, 4]], [0, -1, 2, 3]), _about()),
    "key at the length": (_rows([[0, 1, 2, 3, 4]], [0, 1, 2, 4]), _about()),
    "key of 2^31 - 1": (_rows([[0, 1, 2, 3, 4]], [0, 1, 2, 2**31 - 1]), _about()),
    "unsorted keys": (_rows([[0, 2, 2, 3, 4]], [1, 0, 2, 3]), _about()),
    "a key twice": (_rows([[0, 2, 2, 3, 4]], [1, 1, 2, 3]), _about()),
    "falling rows": (_rows([[0, 3, 1, 3, 4]], [0, 1, 2, 3]), _about()),
    "overlapping rows of two heads": (_rows([[0, 1, 2, 3, 4], [2, 3, 4, 4, 4]], [0, 1, 2, 3]), _about(heads=2)),
    "rows that begin late": (_rows([[1, 1, 2, 3, 4]], [0, 1, 2, 3]), _about()),
    "rows beyond the keys": (_rows([[0, 1, 2, 3, 40]], [0, 1, 2, 3]), _about()),
    "rows that end early": (_rows([[0, 1, 2, 3, 3]], [0, 1, 2, 3]), _about()),
    "negative rows": (_rows([[0, -1, 2, 3, 4]], [0, 1, 2, 3]), _about()),
    "rows of 2^62": (_rows([[0, 2**62, 2**62, 2**62, 4]], [0, 1, 2, 3]), _about()),
    "length of 2^40": (_GOOD, _about(length=2**40)),
    "length of 2^31": (_GOOD, _about(length=2**31)),
    "length 0": (_rows([[0]], []), _about(length=0)),
    "negative length": (_GOOD, _about(length=-4)),
    "length that is a text": (_GOOD, _about(length="many")),
    "a billion heads": (_GOOD, _about(heads=10**9)),
    "no heads": (_rows(np.zeros((0, 5)), []), _about(heads=0)),
    "heads that are a list": (_GOOD, _about(heads=[1])),
    "rows as floats": (_rows([[0, 1, 2, 3, 4]], [0, 1, 2, 3], np.float32), _about()),
    "keys as 64 bits": (_rows([[0, 1, 2, 3, 4]], [0, 1, 2, 3], keys_type=np.int64), _about()),
    "keys in two dimensions": (_rows([[0, 1, 2, 3, 4]], [[0, 1], [2, 3]]), _about()),
    "rows in one dimension": (_rows([0, 1, 2, 3, 4], [0, 1, 2, 3]), _about()),
    "another anchor": (_GOOD, _about(anchor="nowhere")),
    "an anchor that is a list": (_GOOD, _about(anchor=[])),
    "another kind": (_GOOD, _about(kind="gate")),
    "another format": (_GOOD, _about(format=99)),
    "no anchor": (_GOOD, {key: value for key, value in _about().items() if key != "anchor"}),
    "a third tensor": (_GOOD | {"more": np.zeros(3, np.float32)}, _about()),
    "no keys": ({"row_starts": _GOOD["row_starts"]}, _about()),
    "a rule that is a text": (_GOOD, _about(rule="star")),
    "a rule that names code": (_GOOD, _about(rule={"builder": "os.system", "arguments": ["touch harm"]})),
    "a rule 300 deep": (_GOOD, _about(rule=_DEEP)),
}
_ONLY_REBUILT = ("a rule that is a text", "a rule that names code", "a rule 300 deep")


def _refusal(work: Callable[[], object], what: str) -> str:
    try:
        work()
    except SparseBertError as error:
        return str(error)
    require(False, f"{what}: taken as if nothing were wrong")
    return ""


def _pattern_file(trial: Trial, name: str) -> None:
    tensors, about = PATTERNS[name]
    path = trial.folder / "pattern.safetensors"
    path.write_bytes(seal_tensors(tensors, about))
    called = _without_kernel()

    def use() -> None:
        pattern = Pattern.load(path)
        pattern.at(8)
        part = torch.randn(1, 1, 4, 8)
        attend(part, part, part, pattern=pattern, backend="sparse")

    _refusal(use, name)
    require(not called, f"{name}: the kernel was called")
    require(not Path("harm").exists(), f"{name}: code was run")


def _without_kernel() -> list[str]:
    """From here on a call into the kernel is noted instead of made."""
    called: list[str] = []

    def refuse() -> Any:
        called.append("library")
        raise RuntimeError("the kernel was asked for")

    for module in (sparse_library, sparse_indices, sparse_kernel):
        module.library = refuse  # type: ignore[attr-defined]
    return called


# What attend() is handed


def _attend(**changes: Any) -> Callable[[], object]:
    part = torch.randn(2, 2, 6, 8)
    arguments: dict[str, Any] = {"query": part, "key": part, "value": part, "pattern": patterns.star(length=6)}

    def use() -> object:
        merged = arguments | changes
        return attend(merged.pop("query"), merged.pop("key"), merged.pop("value"), backend="sparse", **merged)

    return use


CALLS: dict[str, Callable[[], object]] = {
    "negative length of an example": _attend(lengths=torch.tensor([6, -1])),
    "length of an example beyond the input": _attend(lengths=torch.tensor([6, 7])),
    "lengths of 2^62": _attend(lengths=torch.tensor([2**62, 6])),
    "lengths of another batch": _attend(lengths=torch.tensor([6])),
    "lengths as fractions": _attend(lengths=torch.tensor([6.0, 2.0])),
    "an input longer than the pattern": _attend(pattern=patterns.star(length=5)),
    "a pattern of other heads": _attend(pattern=patterns.random(6, 3, sparsity=0.5)),
    "a key of another shape": _attend(key=torch.randn(2, 2, 5, 8)),
    "a value of another type": _attend(value=torch.randn(2, 2, 6, 8).double()),
    "a short bias": _attend(bias=torch.zeros(3)),
    "a bias of another shape": _attend(bias=torch.zeros(2, 2, 24)),
    "three dimensions": _attend(query=torch.randn(2, 6, 8), key=torch.randn(2, 6, 8), value=torch.randn(2, 6, 8)),
    "whole numbers": _attend(query=torch.ones(2, 2, 6, 8).int(), key=torch.ones(2, 2, 6, 8).int()),
    "something that is no pattern": _attend(pattern=object()),
}


def _call(_: Trial, name: str) -> None:
    called = _without_kernel()
    _refusal(CALLS[name], name)
    require(not called, f"{name}: the kernel was called")


# Archives


def _zstd_with_window(log: int) -> bytes:
    """A frame that claims a window of 2^log bytes."""
    return b"\x28\xb5\x2f\xfd" + bytes([0x00, (log - 10) << 3]) + b"\x01\x00\x00"


ARCHIVES: dict[str, tuple[str, Callable[[], bytes]]] = {
    "a gigabyte of zeros in gzip": ("bomb.txt.gz", lambda: gzip.compress(bytes(2**30), 9)),
    "a gigabyte of one line in gzip": ("line.txt.gz", lambda: gzip.compress(b"a" * 2**30, 1)),
    "a gigabyte of one JSON text": ("line.jsonl.gz", lambda: gzip.compress(b'{"text": "' + b"a" * 2**30 + b'"}', 1)),
    "a gigabyte of zeros in zstd": ("bomb.txt.zst", lambda: zstandard.ZstdCompressor().compress(bytes(2**30))),
    "a zstd window of 2^41 bytes": ("window.txt.zst", lambda: _zstd_with_window(41)),
    "a million empty lines in gzip": ("blank.txt.gz", lambda: gzip.compress(b"\n" * 10**6)),
    "gzip inside gzip": ("twice.txt.gz", lambda: gzip.compress(gzip.compress(bytes(10**6)))),
}


def _archive(trial: Trial, name: str) -> None:
    called, make = ARCHIVES[name]
    path = trial.folder / called
    child = os.fork()  # what it takes to make the bomb is not what it takes to read it
    if child == 0:
        path.write_bytes(make())
        os._exit(0)
    os.waitpid(child, 0)
    out = trial.folder / "corpus"
    files = [str(path)]
    _refusal(lambda: prepare_corpus(files, out, model="scratch:tiny", train_vocab=200, workers=1), name)


# Run folders


def set_up(shared: Path) -> None:
    corpus = commands.make_corpus(shared)
    must_run(commands.search(corpus, shared / "run", steps=4), shared / "log")
    (shared / "run" / "result.json").unlink()


def _file(name: str, text: str) -> Callable[[Path], None]:
    def apply(out: Path) -> None:
        (out / name).write_text(text)

    return apply


def _checkpoint(name: str) -> Callable[[Path], None]:
    def apply(out: Path) -> None:
        newest = max((out / "checkpoints").glob("step-*"))
        shutil.copytree(newest, out / "checkpoints" / name)

    return apply


def _manifest(change: Callable[[dict[str, Any]], None]) -> Callable[[Path], None]:
    def apply(out: Path) -> None:
        path = max((out / "checkpoints").glob("step-*")) / "manifest.json"
        manifest = json.loads(path.read_text())
        change(manifest["files"])
        path.write_text(json.dumps(manifest, sort_keys=True, separators=(",", ":")))

    return apply


# what is changed, and whether the run may go on from an older checkpoint, or must be refused
FOLDERS: dict[str, Callable[[Path], None]] = {
    "run.json is a list": _file("run.json", "[]"),
    "run.json is a number": _file("run.json", "7"),
    "run.json holds lists": _file("run.json", '{"fit": [], "settings": [], "environment": []}'),
    "run.json holds NaN": _file("run.json", '{"fit": {"seed": NaN}, "settings": {}}'),
    "run.json holds an endless number": _file("run.json", '{"fit": {"seed": ' + "9" * 5000 + "}}"),
    "run.json is 100,000 brackets": _file("run.json", "[" * 100_000),
    "threads as text": _file("run.json", "THREADS"),
    "result.json is a list": _file("result.json", "[1]"),
    "result.json is empty": _file("result.json", ""),
    "timing.json is a list": _file("timing.json", "[]"),
    "timing.json holds texts": _file("timing.json", '{"sessions": [{"seconds": "long"}]}'),
    "checkpoint with a number beyond all": _checkpoint("step-" + "9" * 30),
    "checkpoint with a superscript": _checkpoint("step-²"),
    "checkpoint with an Arabic digit": _checkpoint("step-٣"),
    "manifest that names ../": _manifest(lambda files: files.update({"../../run.json": files["progress.json"]})),
    "manifest of lists": _manifest(lambda files: files.update({"progress.json": []})),
    "manifest of negative sizes": _manifest(lambda files: files["progress.json"].update(bytes=-1)),
    "manifest without a file": _manifest(lambda files: files.__delitem__("progress.json")),
    "metrics.jsonl of zeros": _file("metrics.jsonl", "\0" * 10_000),
    "metrics.jsonl is empty": _file("metrics.jsonl", ""),
}


def _run_folder(trial: Trial, name: str) -> None:
    """Either a refusal in a sentence, or a run that goes on from what is good; never a traceback."""
    out, log = trial.folder / "run", trial.folder / "log"
    shutil.copytree(trial.shared / "run", out)
    if name == "threads as text":
        found = json.loads((out / "run.json").read_text())
        found["environment"]["threads"] = "many"
        (out / "run.json").write_text(json.dumps(found))
    else:
        FOLDERS[name](out)
    code = run(commands.search(trial.shared / "corpus", out, steps=4), log)
    said = log.read_text()
    require("Traceback" not in said and code in (0, 2), f"{name}: exit code {code}: {said[-500:]}")
    if code == 2:
        require(sum(line.startswith("error: ") for line in said.splitlines()) == 1, f"{name}: {said[-500:]}")
        return
    model = Path("model") / "model.safetensors"
    require(
        (out / model).read_bytes() == (trial.shared / "run" / model).read_bytes(), f"{name}: other weights came out"
    )


def _sanitized(_: Trial, __: str) -> None:
    signal.alarm(0)  # compiling takes its time
    names = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    done = subprocess.run(["bash", _KERNEL / "check_memory.sh"], capture_output=True, text=True, check=False, env=names)
    require(done.returncode == 0, f"check_memory.sh: {(done.stdout + done.stderr)[-500:]}")


_KINDS: list[tuple[Callable[[Trial, str], None], list[str]]] = [
    (_pattern_file, list(PATTERNS)),
    (_call, list(CALLS)),
    (_archive, list(ARCHIVES)),
    (_run_folder, list(FOLDERS)),
    (_sanitized, ["the kernel under the address sanitizer"]),
]
CASES = [(kind, name) for kind, names in _KINDS for name in names]


def hostile(trial: Trial) -> Figures:
    kind, name = CASES[trial.number]
    os.chdir(trial.folder)
    signal.alarm(120)  # a trial that hangs ends as one whose process died
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    kind(trial, name)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    require(grown < _MOST_MEMORY, f"{name}: took {grown / 2**20:.0f} MiB")
    return {"mebibytes": grown / 2**20}


ROWS = [
    Row(
        "S2",
        "hostile pattern files, arguments of attend(), archives and run folders; the kernel under ASan and UBSan",
        "refused before any kernel call; ASan clean",
        len(CASES),
        hostile,
        set_up,
        unit="cases",
        fast=range(len(PATTERNS) + len(CALLS)),
        words=lambda figures: f"at most {max(one['mebibytes'] for one in figures):.0f} MiB",
    )
]
