"""Journal: an append-only file of JSON objects. Each is a line with a sha256, compressed as a zstd frame of its own.

`zstdcat` shows the lines. Killed at any moment a writer leaves every earlier entry as it was, and its own whole or
absent: half a frame at the end is passed over, and the next writer cuts it off. Writers wait for each other.
"""

import contextlib
import json
import logging
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import zstandard

from sparsebert.errors import FileError
from sparsebert.files import canonical_json, file_errors, sha256, sync_name
from sparsebert.locks import locked

logger = logging.getLogger(__name__)

_LEVEL = 9
_MAGIC = zstandard.MAGIC_NUMBER.to_bytes(4, "little")  # the first bytes of every frame
_CHUNK = 2**12  # bytes; a frame of nothing but repetitions can unpack each to 32,768 times as many
_MOST_BYTES = 256 * 2**20  # of an entry, unpacked; a claim beyond this is hostile


@dataclass(frozen=True)
class ByteRange:
    """Where the frame of an entry lies, in bytes."""

    start: int
    end: int


class Journal:
    """The file, to read from and to append to; whoever uses it remembers where its entries lie."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def entries(self, start: int = 0) -> Iterator[tuple[ByteRange, dict[str, Any]]]:
        """Every whole entry from a place on; a FileError at the first that is not as it was written."""
        with file_errors("read", self.path), self.path.open("rb") as stream:
            stream.seek(start)
            data = memoryview(stream.read())
        if start == 0 and any(data) and not _MAGIC.startswith(bytes(data[:4])):
            raise FileError(f"{self.path} is no file of records; expected one that `sparsebert study --record` wrote")
        at = 0
        while at < len(data):
            place = ByteRange(start + at, start + len(data))
            found = self._unpack(data[at:], place)
            if found is None:
                if self._is_followed(data[at:], place):
                    raise self._damaged(place, "it has no end")
                logger.warning("%s ends in the middle of an entry, at byte %d; it is left out", self.path, place.start)
                return
            content, size = found
            at += size
            yield ByteRange(place.start, start + at), self._opened(content, place)

    def read(self, place: ByteRange) -> dict[str, Any]:
        """The entry at a place that entries() gave."""
        with file_errors("read", self.path), self.path.open("rb") as stream:
            stream.seek(place.start)
            found = self._unpack(memoryview(stream.read(place.end - place.start)), place)
        if found is None:
            raise self._damaged(place, "it is cut off")
        return self._opened(found[0], place)

    @contextlib.contextmanager
    def appending(self) -> Iterator["Appender"]:
        """Hold the file, which is made where there is none, against other writers."""
        is_new = not self.path.exists()
        with locked(self.path) as descriptor:
            if is_new:
                sync_name(self.path)
            yield Appender(descriptor, self.path)

    def _unpack(self, data: memoryview, place: ByteRange) -> tuple[bytes, int] | None:
        """The first frame's content, and the frame's size; None: it is not whole."""
        decoder, parts, at, total = zstandard.ZstdDecompressor().decompressobj(), [], 0, 0
        try:
            while at < len(data) and not decoder.eof:
                parts.append(decoder.decompress(data[at : at + _CHUNK]))
                at, total = min(at + _CHUNK, len(data)), total + len(parts[-1])
                if total > _MOST_BYTES:
                    raise self._damaged(place, f"it unpacks to more than {_MOST_BYTES:,} bytes")
        except zstandard.ZstdError as error:
            # Some file systems give a file its new size before its new bytes.
            if not any(data):
                return None
            raise self._damaged(place, str(error)) from error
        return (b"".join(parts), at - len(decoder.unused_data)) if decoder.eof else None

    def _is_followed(self, data: memoryview, place: ByteRange) -> bool:
        """Whether a whole entry lies beyond the start: then what stands there was not cut off but damaged."""
        tail, at = bytes(data), 0
        while (at := tail.find(_MAGIC, at + 1)) > 0:
            with contextlib.suppress(FileError):
                found = self._unpack(data[at:], place)
                if found is not None and self._opened(found[0], place):
                    return True
        return False

    def _opened(self, content: bytes, place: ByteRange) -> dict[str, Any]:
        try:
            entry = json.loads(content)
            del entry["sha256"]
            is_whole = content == _line(entry)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise self._damaged(place, f"it is not the JSON that was written: {error}") from error
        if not is_whole:
            raise self._damaged(place, "its sha256 differs from the one in it")
        return dict(entry)

    def _damaged(self, place: ByteRange, reason: str) -> FileError:
        return FileError(f"{self.path} is damaged at byte {place.start:,} ({reason}); restore it from a copy")


class Appender:
    """The file, while no one else writes to it."""

    def __init__(self, descriptor: int, path: Path) -> None:
        self.descriptor, self.path = descriptor, path

    def append(self, entry: Mapping[str, Any], end: int) -> ByteRange:
        """Write an entry after the last whole one, which ends at `end`; on the disk when this returns."""
        frame = zstandard.ZstdCompressor(level=_LEVEL).compress(_line(entry))
        with file_errors("write", self.path):
            os.ftruncate(self.descriptor, end)
            try:
                left, at = frame, end
                while left:
                    size = os.pwrite(self.descriptor, left, at)
                    left, at = left[size:], at + size
                os.fsync(self.descriptor)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.ftruncate(self.descriptor, end)
                raise
        return ByteRange(end, end + len(frame))


def _line(entry: Mapping[str, Any]) -> bytes:
    return canonical_json({**entry, "sha256": sha256(canonical_json(entry).encode())}).encode() + b"\n"
