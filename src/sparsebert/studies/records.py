"""Finished runs as small files for version control: one JSON a run, with what reports and most later runs read of it.

Beside them lies the study's own study.json, so that a folder of records can be read as a study.

Left out: weights, the log of single steps, patterns that words or another run's files give again, and what a search
learned of every single entry, half a megabyte each: the pattern is there, and a run that needs more makes it again.
"""

import binascii
import contextlib
import lzma
from base64 import b64decode, b64encode
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sparsebert.errors import FileError
from sparsebert.files import read_bytes, read_json, synced_together, unsynced, write_atomic, write_json
from sparsebert.studies.runs import RESULT, Run, Stage

_VERSION = 1
_TEXTS = ("run.json", "timing.json", "importance.json", RESULT)
_PACKED: dict[Stage, tuple[str, ...]] = {
    "importance": ("gate.safetensors", "attention.safetensors"),
    "search": ("gate.safetensors", "pattern.safetensors"),
    "prune": ("pattern.safetensors",),
}
_LARGEST_GATE = 2**18  # bytes, of a search
_MOST_BYTES = 256 * 2**20  # of an unpacked file; a claim beyond this is hostile


def record_of(folder: Path, run_id: str) -> Path:
    """Where the record of a run lies, if there is one."""
    return folder / f"{run_id}.json"


def write_record(run: Run, made: Path, into: Path) -> bool:
    """Record the finished run in the folder `made`; False: it was recorded before."""
    path = record_of(into, run.id)
    if path.is_file():
        return False
    texts = {name: read_json(made / name) for name in _TEXTS if (made / name).is_file()}
    packed = {name: _pack(made / name) for name in _PACKED.get(run.stage, ()) if _is_kept(run, made / name)}
    write_json(path, {"version": _VERSION, "id": run.id, "files": texts, "packed": packed})
    return True


def _is_kept(run: Run, path: Path) -> bool:
    if not path.is_file():
        return False
    return run.stage != "search" or path.name != "gate.safetensors" or path.stat().st_size <= _LARGEST_GATE


def recorded_files(folder: Path, run_id: str) -> set[str]:
    """Names of the files that a record gives back; none where there is no record."""
    path = record_of(folder, run_id)
    if not path.is_file():
        return set()
    record = _read(path)
    return {*record["files"], *record["packed"]}


def restore(folder: Path, run_id: str, into: Path) -> None:
    """The files of a record, as the run left them."""
    path = record_of(folder, run_id)
    record = _read(path)
    with synced_together():
        for name in record["packed"]:
            write_atomic(into / name, _unpack(record["packed"][name], path))
        for name in record["files"].keys() - {RESULT}:
            write_json(into / name, record["files"][name])
    # The result last: it says that the run is done.
    if RESULT in record["files"]:
        write_json(into / RESULT, record["files"][RESULT])


@contextlib.contextmanager
def unpacked(folder: Path) -> Iterator[Path]:
    """The folder as a study folder: itself, or for the time being its records as the run folders they came from."""
    study = folder / "study.json"
    if not study.is_file() or (folder / "runs").is_dir():
        yield folder
        return
    with TemporaryDirectory() as place:
        with unsynced():
            for record in sorted(folder.glob("*.json")):
                if record != study:
                    restore(folder, record.stem, Path(place) / "runs" / record.stem)
            write_json(Path(place) / study.name, read_json(study))
        yield Path(place)


def _read(path: Path) -> dict[str, Any]:
    record = read_json(path)
    is_record = isinstance(record, dict) and record.get("version") == _VERSION and record.get("id") == path.stem
    known = {"files": _TEXTS, "packed": {name for names in _PACKED.values() for name in names}}
    for part, names in known.items():
        is_record = is_record and isinstance(record.get(part), dict) and set(record[part]) <= set(names)
    if not is_record:
        raise FileError(f"{path} is no record of run {path.stem}; remove it, or write it again with study --record")
    return dict(record)


def _pack(path: Path) -> str:
    return b64encode(lzma.compress(read_bytes(path))).decode()


def _unpack(text: object, path: Path) -> bytes:
    try:
        unpacking = lzma.LZMADecompressor()
        data = unpacking.decompress(b64decode(str(text), validate=True), _MOST_BYTES)
    except (binascii.Error, lzma.LZMAError) as error:
        raise FileError(f"{path} is damaged ({error}); write it again with study --record") from error
    if not unpacking.eof:
        raise FileError(f"{path} holds a file that is cut off or too large; write it again with study --record")
    return data
