"""Files that are whole or absent: one atomic write, one verified read.

A sealed tensor file is a safetensors file whose single metadata key holds one canonical JSON object. That object
carries a sha256 over every byte of the file (its own 64 digits counted as zeros), so any flipped bit is noticed,
in the header as well as in the data, and equal contents give equal bytes.

A published folder is the same for several files: a manifest with the sha256 of each is written last, and the folder
gets its name only when all of it is on the disk.

When a file must be on the disk is for whoever relies on it to say: synced_together() and unsynced() put off or leave
out the syncs of what is written inside them (docs/decisions/durability.md).
"""

import contextlib
import hashlib
import json
import math
import mmap
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_safetensors
from safetensors.numpy import save as save_safetensors

from sparsebert.errors import FileError

SEAL_KEY = "sparsebert"
MANIFEST = "manifest.json"
_BLANK_SEAL = "0" * 64
_SEAL = re.compile("[0-9a-f]{64}")
_SAFETENSORS_DTYPES = {"U8": "<u1", "U16": "<u2", "U32": "<u4", "U64": "<u8", "I32": "<i4", "I64": "<i8", "F32": "<f4"}
_MAX_JSON_BYTES = 256 * 2**20  # the manifest of a corpus of a million shards; a claim beyond this is hostile
_MAX_HEADER_BYTES = 16 * 2**20  # a sealed header is a few hundred bytes; a claim beyond this is hostile


def canonical_json(value: Any) -> str:
    """The one spelling of a JSON value: sorted keys, no spaces, no NaN."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def sha256_of_file(path: Path) -> str:
    with file_errors("read", path), path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@contextlib.contextmanager
def file_errors(verb: str, path: Path) -> Iterator[None]:
    """What the system says of a file, as an error of ours that names it; verb: read, write."""
    try:
        yield
    except SafetensorError as error:  # safetensors wraps what the system said, a full disk above all
        raise FileError(f"cannot {verb} {path}: {error}") from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise FileError(f"cannot {verb} {path}: {reason}") from error


class Unsynced:
    """Files and folders that are written but may not be on the disk yet."""

    def __init__(self) -> None:
        self._files: dict[Path, None] = {}
        self._folders: dict[Path, None] = {}

    def add(self, path: Path) -> None:
        """A file, or a folder with all that is in it; the folder that holds it comes along."""
        if path.is_dir():
            self._files |= dict.fromkeys(path.rglob("*"))
            self._folders[path] = None
        else:
            self._files[path] = None
        self._folders[path.parent] = None

    def sync(self) -> None:
        """Each once, files before folders; what was removed meanwhile needs no sync."""
        for path in [*self._files, *self._folders]:
            with file_errors("write", path), contextlib.suppress(FileNotFoundError):
                _sync(path)


# None: every write is brought to the disk at once. Threads begin with None, which is the safe side.
_unsynced: ContextVar[Unsynced | None] = ContextVar("unsynced", default=None)


@contextlib.contextmanager
def synced_together() -> Iterator[Unsynced]:
    """What is written inside is on the disk at the end, each file and folder synced once.

    Until then a power cut may tear any of it, so it is for files that nobody relies on before the end. Inside
    another one, the outer one syncs.
    """
    outer = _unsynced.get()
    if outer is not None:
        yield outer
        return
    with unsynced() as waiting:
        yield waiting
    waiting.sync()


@contextlib.contextmanager
def unsynced() -> Iterator[Unsynced]:
    """What is written inside is not synced: temporary files, or files that the caller syncs."""
    waiting = Unsynced()
    token = _unsynced.set(waiting)
    try:
        yield waiting
    finally:
        _unsynced.reset(token)


def _sync(path: Path) -> None:
    """Bring a file's bytes, or a folder's names, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_name(path: Path) -> None:
    """Make the name of a file or folder survive a power cut."""
    _sync(path.parent)


def make_folder(folder: Path) -> None:
    """Make the folder where there is none, and its name survive a power cut."""
    if not folder.is_dir():
        folder.mkdir(parents=True)
        sync_name(folder)


def write_atomic(path: Path, data: bytes) -> None:
    """Write the file whole or leave what was there: temporary neighbour, fsync, rename, fsync of the folder."""
    path = Path(path)
    waiting = _unsynced.get()
    with file_errors("write", path):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(data)
                stream.flush()
                if waiting is None:
                    os.fsync(stream.fileno())
            os.chmod(name, 0o644)  # noqa: PTH101 - mkstemp gives 0600, which hides results from other users
            os.replace(name, path)  # noqa: PTH105 - the name is a plain string from mkstemp
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name)  # noqa: PTH108
            raise
        if waiting is None:
            _sync(path.parent)
        else:
            waiting.add(path)


def write_json(path: Path, value: Any) -> None:
    """A JSON file people can read: indented, keys sorted, a newline at the end."""
    write_atomic(path, readable_json(value))


def readable_json(value: Any) -> bytes:
    """The bytes of write_json: one spelling, so that a file can be held to it."""
    return (json.dumps(value, sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def read_bytes(path: Path, limit: int | None = None) -> bytes:
    """The whole of a regular file. limit: bytes beyond which it is refused unread."""
    with file_errors("read", path):
        # Not to wait for ever where a pipe goes by the name of a file.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as stream:
            about = os.fstat(descriptor)
            if not stat.S_ISREG(about.st_mode):
                raise FileError(f"{path} is not a regular file; expected one")
            if limit is not None and about.st_size > limit:
                raise FileError(f"{path} has {about.st_size:,} bytes; expected at most {limit:,}")
            return stream.read()


def read_json(path: Path) -> Any:
    try:
        text = read_bytes(path, _MAX_JSON_BYTES).decode("utf-8")
        return json.loads(text, parse_constant=_refuse_constant, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        reason = str(error).split(";")[0]
        raise FileError(f"{path} is not valid JSON ({reason}); restore it from where it came from") from error


def _refuse_constant(name: str) -> None:
    """NaN and Infinity are Python's, not JSON's."""
    raise ValueError(f"it holds {name}")


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"it holds the number {digits[:20]}, which is beyond all bounds")
    return value


def seal_tensors(tensors: Mapping[str, np.ndarray], about: Mapping[str, Any]) -> bytes:
    """The bytes of a sealed tensor file; `about` is any JSON object without the key sha256."""
    header = canonical_json({**about, "sha256": _BLANK_SEAL})
    arrays = {name: np.ascontiguousarray(array) for name, array in tensors.items()}
    blank = save_safetensors(arrays, metadata={SEAL_KEY: header})
    return _with_seal(blank, _BLANK_SEAL, sha256(blank))


def open_sealed_tensors(data: bytes, path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Tensors and `about` of a sealed tensor file, or a FileError if any bit differs from what was sealed."""
    about = _sealed_header(data, path)
    seal = about.pop("sha256")
    if sha256(_with_seal(data, seal, _BLANK_SEAL)) != seal:
        raise FileError(f"{path} is damaged: its sha256 differs from the one sealed in it; restore it from a copy")
    try:
        return load_safetensors(data), about
    except (SafetensorError, ValueError, KeyError, OverflowError) as error:
        raise FileError(f"{path} is not a readable safetensors file ({error}); restore it from a copy") from error


def map_tensors(path: Path, expected_sha256: str | None) -> dict[str, np.ndarray]:
    """Read-only views into a memory-mapped safetensors file.

    The whole file is hashed first and must match; None is for a file that this process has already seen match.
    """
    with file_errors("read", path), path.open("rb") as stream:
        try:
            mapped = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError as error:  # an empty file cannot be mapped
            raise FileError(f"{path} is empty; restore it from a copy") from error
    if expected_sha256 is not None and hashlib.sha256(mapped).hexdigest() != expected_sha256:
        raise FileError(f"{path} is damaged: its sha256 differs from the recorded one; restore it from a copy")
    size = _header_size(mapped[:8])
    try:
        if size > min(len(mapped) - 8, _MAX_HEADER_BYTES):
            raise ValueError("its header is longer than the file")
        header: dict[str, Any] = json.loads(mapped[8 : 8 + size])
        header.pop("__metadata__", None)
        return {name: _view(mapped, 8 + size, entry) for name, entry in header.items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        raise FileError(f"{path} is not a readable safetensors file ({error}); restore it from a copy") from error


def _view(mapped: mmap.mmap, start: int, entry: Mapping[str, Any]) -> np.ndarray:
    dtype = np.dtype(_SAFETENSORS_DTYPES[entry["dtype"]])
    begin, end = (int(offset) for offset in entry["data_offsets"])
    shape = tuple(int(extent) for extent in entry["shape"])
    count = math.prod(shape)
    if min(begin, count, *shape) < 0 or end - begin != count * dtype.itemsize or start + end > len(mapped):
        raise ValueError("a tensor lies outside the file")
    return np.frombuffer(mapped, dtype, count, start + begin).reshape(shape) if count else np.zeros(shape, dtype)


def _with_seal(data: bytes, old: str, new: str) -> bytes:
    size = _header_size(data)
    header = data[8 : 8 + size]
    return data[:8] + header.replace(old.encode(), new.encode(), 1) + data[8 + size :]


def _header_size(data: bytes) -> int:
    return int.from_bytes(data[:8], "little")


def _sealed_header(data: bytes, path: Path) -> dict[str, Any]:
    damaged = FileError(f"{path} is not a sealed sparsebert tensor file; expected one written by sparsebert")
    size = _header_size(data)
    if len(data) < 8 or size > min(len(data) - 8, _MAX_HEADER_BYTES):
        raise damaged
    try:
        about: Any = json.loads(json.loads(data[8 : 8 + size])["__metadata__"][SEAL_KEY])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise damaged from error
    if not isinstance(about, dict):
        raise damaged
    seal = about.get("sha256")
    if not isinstance(seal, str) or not _SEAL.fullmatch(seal) or data.count(seal.encode(), 8, 8 + size) != 1:
        raise damaged
    return about


def publish_folder(folder: Path, fill: Callable[[Path], None]) -> None:
    """place_folder(), sealed with a manifest of what was filled in."""

    def fill_and_seal(part: Path) -> None:
        fill(part)
        _seal_folder(part)

    place_folder(folder, fill_and_seal)


def place_folder(folder: Path, fill: Callable[[Path], None]) -> None:
    """Make a folder appear whole or not at all; replaces one of the same name.

    `fill` writes into a temporary neighbour; that is brought to the disk, and then renamed.
    """
    part = folder.with_name(f".{folder.name}.part")
    waiting = _unsynced.get()
    with file_errors("write", folder):
        remove_folder(part)
        part.mkdir(parents=True)
        try:
            with unsynced():
                fill(part)
            if waiting is None:
                for path in [*part.rglob("*"), part]:
                    _sync(path)
            remove_folder(folder)
            part.rename(folder)
        except BaseException:
            shutil.rmtree(part, ignore_errors=True)
            raise
        if waiting is None:
            _sync(folder.parent)
        else:
            waiting.add(folder)


def _seal_folder(folder: Path) -> None:
    """Write the manifest that vouches for every file."""
    entries = {
        path.name: {"bytes": path.stat().st_size, "sha256": sha256_of_file(path)} for path in sorted(folder.iterdir())
    }
    write_atomic(folder / MANIFEST, canonical_json({"files": entries}).encode())


def verified_files(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Name and contents of every file of a published folder; a FileError at the first bit that is not as published."""
    data = read_bytes(folder / MANIFEST)
    try:
        manifest = json.loads(data)
        entries = {str(name): (int(entry["bytes"]), entry["sha256"]) for name, entry in manifest["files"].items()}
        is_ours = canonical_json(manifest).encode() == data
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise FileError(f"{folder / MANIFEST} is damaged: it is not the JSON that was written") from error
    present = {path.name for path in folder.iterdir()} - {MANIFEST}
    if not is_ours or present != set(entries):
        raise FileError(f"{folder} holds {sorted(present)}; its manifest names {sorted(entries)}")
    for name, (size, digest) in entries.items():
        contents = read_bytes(folder / name)
        if len(contents) != size:
            raise FileError(f"{folder / name} has {len(contents)} bytes; its manifest says {size}")
        if sha256(contents) != digest:
            raise FileError(f"{folder / name} is damaged: its sha256 differs from the one in its manifest")
        yield name, contents


def remove_folder(folder: Path) -> None:
    """Take a folder's name away at once, then its files: half a folder never goes by the name of a whole one."""
    if folder.exists():
        old = folder.with_name(f".{folder.name.lstrip('.')}.old")
        shutil.rmtree(old, ignore_errors=True)
        folder.rename(old)
        shutil.rmtree(old)


def sweep(folder: Path) -> None:
    """Remove what killed writers left behind in a folder and below: temporary files and folders."""
    for left in [*folder.rglob(".*.part"), *folder.rglob(".*.old")]:
        shutil.rmtree(left, ignore_errors=True) if left.is_dir() else left.unlink(missing_ok=True)


def require_space(folder: Path, needed: int) -> None:
    """Refuse before a byte is written, rather than fail with a full disk."""
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise FileError(
            f"{folder} has {free / 2**20:,.0f} MiB free but {needed / 2**20:,.0f} MiB are to be written; "
            "free some space and run the same command again"
        )
