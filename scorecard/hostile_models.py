"""S1: model folders that want to run code, ask questions, connect, fill the memory, or be something else."""

import json
import os
import pickle
import resource
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from scorecard import shim
from scorecard.row import Figures, Row, Trial, require
from sparsebert.errors import SparseBertError
from sparsebert.files import open_sealed_tensors, seal_tensors
from sparsebert.model import load_model
from sparsebert.model.config import PATTERN_FILE
from sparsebert.patterns import star

_MOST_MEMORY = 400 * 2**20  # bytes that a refusal may take
_MOST_SECONDS = 60.0
_HARM = "harm"  # a file that only code from the folder would make


def set_up(shared: Path) -> None:
    load_model("scratch:tiny", "sequence_classification", vocab_size=50, pattern=star(length=16)).save_pretrained(
        shared / "good"
    )


def _config(**changes: Any) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        path = folder / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    return change


def _pattern(**changes: Any) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        path = folder / "config.json"
        config = json.loads(path.read_text())
        config["pattern"] |= changes
        path.write_text(json.dumps(config))

    return change


def _raw_config(data: bytes) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        (folder / "config.json").write_bytes(data)

    return change


def _weights(change: Callable[[dict[str, torch.Tensor]], None]) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        tensors = load_file(folder / "model.safetensors")
        change(tensors)
        save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})

    return apply


def _fractions(folder: Path) -> None:
    """Keys that are no whole numbers, well sealed."""
    path = folder / PATTERN_FILE
    tensors, about = open_sealed_tensors(path.read_bytes(), path)
    path.write_bytes(seal_tensors({**tensors, "keys": tensors["keys"].astype(np.float32)}, about))


def _header(change: Callable[[dict[str, Any]], None]) -> Callable[[Path], None]:
    """Another header over the same data."""

    def apply(folder: Path) -> None:
        data = (folder / "model.safetensors").read_bytes()
        size = int.from_bytes(data[:8], "little")
        header = json.loads(data[8 : 8 + size])
        change(header)
        new = json.dumps(header).encode()
        (folder / "model.safetensors").write_bytes(len(new).to_bytes(8, "little") + new + data[8 + size :])

    return apply


def _first(header: dict[str, Any]) -> dict[str, Any]:
    return dict(header[next(name for name in sorted(header) if "word_embeddings" in name)])


class _Bomb:
    """Makes the file HARM in the working folder when it is unpickled."""

    def __reduce__(self) -> Any:
        return (Path(_HARM).touch, ())


def _pickled(name: str) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        (folder / "model.safetensors").unlink()
        (folder / name).write_bytes(pickle.dumps(_Bomb()))

    return apply


def _code(folder: Path) -> None:
    (folder / "theirs.py").write_text(f"open({_HARM!r}, 'w').close()\nclass Model: pass\nclass Config: pass\n")
    _config(auto_map={"AutoModel": "theirs.Model", "AutoConfig": "theirs.Config"})(folder)


def _shards(name: str) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        (folder / "model.safetensors").rename(folder.parent / "outside.safetensors")
        keys = load_file(folder.parent / "outside.safetensors")
        index = {"metadata": {}, "weight_map": dict.fromkeys(keys, name.format(folder.parent))}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))

    return apply


def _link(name: str, target: str) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        outside = folder.parent / "outside"
        (folder / name).rename(outside)
        (folder / name).symlink_to(target or outside)

    return apply


def _pipe(folder: Path) -> None:
    (folder / "config.json").unlink()
    os.mkfifo(folder / "config.json")


def _sparse_file(folder: Path) -> None:
    with (folder / "config.json").open("r+b") as stream:
        stream.truncate(2**40)


def _size(data: int) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        path = folder / "model.safetensors"
        path.write_bytes(data.to_bytes(8, "little") + path.read_bytes()[8:])

    return apply


_EMBEDDINGS = "bert.embeddings.word_embeddings.weight"
CASES: dict[str, Callable[[Path], None]] = {
    "pickle weights only": _pickled("pytorch_model.bin"),
    "pickle weights called safetensors": _pickled("model.safetensors"),
    "code in auto_map": _code,
    "custom pipelines": _config(custom_pipelines={"x": {"impl": "theirs.Pipe"}}),
    "attention kernel on a hub": _config(_attn_implementation="someone/kernel"),
    "attention kernel on a hub, public name": _config(attn_implementation="kernels-community/flash-attn"),
    "attention as an object": _config(_attn_implementation={"": "someone/kernel"}),
    "weights elsewhere": _config(transformers_weights="../outside.safetensors"),
    "quantiser": _config(quantization_config={"quant_method": "gptq", "bits": 4}),
    "another family": _config(model_type="gpt2"),
    "hidden size of 2^40": _config(hidden_size=2**40),
    "a billion layers": _config(num_hidden_layers=10**9),
    "vocabulary of 2^50": _config(vocab_size=2**50),
    "positions of 2^45": _config(max_position_embeddings=2**45),
    "a billion labels": _config(num_labels=10**9, id2label=None, label2id=None),
    "pattern of 2^60 entries": _pattern(kept=2**60),
    "pattern of 2^40 positions": _pattern(length=2**40),
    "pattern of minus one head": _pattern(heads=-1),
    "pattern of another model": _pattern(digest="0" * 64),
    "layers as text": _config(num_hidden_layers="two"),
    "configuration is a list": _raw_config(b"[]"),
    "configuration of 100,000 brackets": _raw_config(b'{"a":' * 100_000),
    "configuration with an endless number": _raw_config(
        b'{"model_type": "bert", "vocab_size": ' + b"9" * 10_000 + b"}"
    ),
    "configuration is a pipe": _pipe,
    "configuration of a terabyte": _sparse_file,
    "configuration is /dev/zero": _link("config.json", "/dev/zero"),
    "header of 2^62 bytes": _size(2**62),
    "header of 0 bytes": _size(0),
    "header beyond the file": _size(2**40),
    "tensor of 2^60 values": _header(lambda header: header[_EMBEDDINGS].update(shape=[2**30, 2**30])),
    "overlapping tensors": _header(lambda header: header[_EMBEDDINGS].update(data_offsets=[0, 50 * 128 * 4])),
    "negative offsets": _header(lambda header: header[_EMBEDDINGS].update(data_offsets=[-8, 50 * 128 * 4 - 8])),
    "unknown type": _header(lambda header: header[_EMBEDDINGS].update(dtype="F4096")),
    "shards in ../": _shards("../outside.safetensors"),
    "shards at an absolute path": _shards("{}/outside.safetensors"),
    "weights are a link out of the folder": _link("model.safetensors", ""),
    "weights are a link to /etc/passwd": _link("model.safetensors", "/etc/passwd"),
    "weights as whole numbers": _weights(lambda t: t.update({_EMBEDDINGS: t[_EMBEDDINGS].to(torch.int32)})),
    "pattern as fractions": _fractions,
    "missing tensor": _weights(lambda t: t.__delitem__(_EMBEDDINGS)),
    "extra tensor": _weights(lambda t: t.update({"bert.more": torch.zeros(3)})),
    "tensor of another shape": _weights(lambda t: t.update({_EMBEDDINGS: torch.zeros(51, 128)})),
}


def hostile(trial: Trial) -> Figures:
    name = list(CASES)[trial.number]
    folder = trial.folder / "model"
    folder.mkdir()
    for path in (trial.shared / "good").iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    CASES[name](folder)
    os.chdir(trial.folder)
    signal.alarm(120)  # a trial that hangs ends as one whose process died
    log = trial.folder / "connections"
    shim.forbid_network(log)
    os.environ.pop("HF_HUB_OFFLINE", None)
    sys.stdin = Path(os.devnull).open()  # noqa: SIM115 - a prompt ends in an error
    before, started = _memory(), time.monotonic()
    try:
        load_model(str(folder), "sequence_classification")
    except SparseBertError as error:
        said = str(error)
    else:
        said = ""
    require(said, f"{name}: loaded as if nothing were wrong")
    require(len(said) < 1000 and "\n" not in said, f"{name}: not a sentence: {said[:300]!r}")
    require(not (trial.folder / _HARM).exists(), f"{name}: code of the folder was run")
    require(not log.exists(), f"{name}: a connection was tried: {log.read_text() if log.exists() else ''}")
    grown, seconds = _memory() - before, time.monotonic() - started
    require(grown < _MOST_MEMORY, f"{name}: took {grown / 2**20:.0f} MiB")
    require(seconds < _MOST_SECONDS, f"{name}: took {seconds:.0f} s")
    return {"mebibytes": grown / 2**20, "seconds": seconds}


def _memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


ROWS = [
    Row(
        "S1",
        "hostile model folders: pickles, code, hub kernels, giant headers, shape bombs, links, wrong types and tensors",
        "25/25 refused in a sentence; 0 code run, 0 prompts, no connection",
        len(CASES),
        hostile,
        set_up,
        unit="folders",
        fast=range(len(CASES)),
        words=lambda figures: (
            f"at most {max(one['mebibytes'] for one in figures):.0f} MiB and "
            f"{max(one['seconds'] for one in figures):.1f} s for a refusal"
        ),
    )
]
