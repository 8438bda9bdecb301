"""The record of one finished run: a JSON object with what reports and most later runs read of it.

Left out: weights, the log of single steps, patterns that words or another run's files give again, and what a search
learned of every single entry, half a megabyte each: the pattern is there, and a run that needs more makes it again.
"""

import binascii
import lzma
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sparsebert.errors import FileError
from sparsebert.files import read_bytes, read_json, readable_json
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
_OF_NUMBERS = {"id": lzma.FILTER_LZMA2, "preset": 6, "lc": 0, "lp": 2, "pb": 2}  # four or eight bytes each
# Weights and averages as they are; the sorted keys of a pattern by their differences.
_FILTERS = ([_OF_NUMBERS], [{"id": lzma.FILTER_DELTA, "dist": 4}, _OF_NUMBERS])


def record_of(run: Run, made: Path) -> dict[str, Any]:
    """The record of the finished run in the folder `made`."""
    texts = {name: read_json(made / name) for name in _TEXTS if (made / name).is_file()}
    kept = [name for name in _PACKED.get(run.stage, ()) if _is_kept(run, made / name)]
    packed = {name: pack(read_bytes(made / name)) for name in kept}
    return {"version": _VERSION, "id": run.id, "files": texts, "packed": packed}


def _is_kept(run: Run, path: Path) -> bool:
    if not path.is_file():
        return False
    return run.stage != "search" or path.name != "gate.safetensors" or path.stat().st_size <= _LARGEST_GATE


def require_record(record: Any, run_id: str, where: Path) -> dict[str, Any]:
    """The same, if it is a record of that run; where: the file it comes from."""
    is_record = isinstance(record, dict) and record.get("version") == _VERSION and record.get("id") == run_id
    known = {"files": _TEXTS, "packed": {name for names in _PACKED.values() for name in names}}
    for part, names in known.items():
        is_record = is_record and isinstance(record.get(part), dict) and set(record[part]) <= set(names)
    if not is_record:
        raise FileError(f"{where} holds no record of run {run_id}; remove it, or write it again with study --record")
    return dict(record)


def files_of(record: Mapping[str, Any], where: Path) -> Iterator[tuple[str, bytes]]:
    """Names and bytes of the files of a record, as the run left them; the result comes last."""
    for name in record["packed"]:
        yield name, _unpack(record["packed"][name], where)
    for name in _TEXTS:
        if name in record["files"]:
            yield name, readable_json(record["files"][name])


def pack(data: bytes) -> str:
    return b64encode(min((lzma.compress(data, filters=filters) for filters in _FILTERS), key=len)).decode()


def _unpack(text: object, where: Path) -> bytes:
    try:
        unpacking = lzma.LZMADecompressor()
        data = unpacking.decompress(b64decode(str(text), validate=True), _MOST_BYTES)
    except (binascii.Error, lzma.LZMAError) as error:
        raise FileError(f"{where} is damaged ({error}); write it again with study --record") from error
    if not unpacking.eof:
        raise FileError(f"{where} holds a file that is cut off or too large; write it again with study --record")
    return data
