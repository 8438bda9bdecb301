"""Where text comes from: a source is a stream of bytes in one of two layouts, plain text or JSON Lines.

    plain text     title line, a paragraph a line, a blank line between documents
    JSON Lines     an object a line, its field `text` holds one document, paragraphs apart by newlines

Files may be compressed (.gz, .zst). `builtin:python-docs` and `hub:OWNER/NAME` become the same kind of stream, so
everything after this module is written once.
"""

import contextlib
import gzip
import hashlib
import json
import os
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import IO, Any, Literal

from sparsebert.errors import CorpusError, MissingExtraError
from sparsebert.text import builtin

Layout = Literal["text", "jsonl"]

_PIECE_BYTES = 2**20
_LAYOUTS: dict[str, Layout] = {".txt": "text", ".jsonl": "jsonl", ".ndjson": "jsonl"}
_PACKED = (".gz", ".zst")
_EXPECTED = "expected .txt, .jsonl, or one of them with .gz or .zst, builtin:python-docs, or hub:OWNER/NAME"
_ZSTD_BYTES = 2**10  # at a time: a few bytes may stand for 128 KiB, and all that comes out is held at once


class DamagedSourceError(CorpusError):
    """Compressed bytes that end early or do not decompress; what came before them was read."""


@dataclass(frozen=True)
class Source:
    """One input: its name in messages and in the manifest, and what its bytes are."""

    name: str  # file name without folders: equal inputs give equal stores wherever they lie
    layout: Layout
    given: str  # as the user wrote it
    num_bytes: int | None  # as stored on disk; None for a hub data set, whose size is not known
    sha256: str | None  # of the bytes as stored on disk; None for a hub data set

    def identity(self) -> dict[str, Any]:
        return {"name": self.name, "layout": self.layout, "bytes": self.num_bytes, "sha256": self.sha256}


def find_sources(given: Sequence[str]) -> list[Source]:
    """Look at every input before any work starts: missing, unknown and repeated ones are refused here."""
    if not given:
        raise CorpusError(f"no text was given; {_EXPECTED}")
    sources = [_find(str(one)) for one in given]
    for first, second in combinations(sources, 2):
        if first.given == second.given or (first.sha256 is not None and first.sha256 == second.sha256):
            raise CorpusError(f"{first.given} and {second.given} hold the same text; give it once")
        if first.name == second.name:
            raise CorpusError(f"two inputs are called {first.name}; rename one, so that messages can tell them apart")
    return sources


def _find(given: str) -> Source:
    if given.startswith("builtin:"):
        if given.removeprefix("builtin:") not in builtin.NAMES:
            raise CorpusError(f"{given} is not a built-in text; the built-in ones are: builtin:{builtin.NAMES[0]}")
        data = builtin.python_docs()
        return Source(given, "text", given, len(data), hashlib.sha256(data).hexdigest())
    if given.startswith("hub:"):
        _hub_parts(given)
        return Source(given, "jsonl", given, None, None)
    path = Path(given)
    with _readable(path), path.open("rb") as stream:
        layout = layout_of(path)
        # The whole file is hashed, not its size and date: a copy has another date, an edit may keep the size.
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
        return Source(path.name, layout, given, os.fstat(stream.fileno()).st_size, digest)


def layout_of(path: Path) -> Layout:
    """The layout that the file's name promises."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packed = bool(suffixes) and suffixes[-1] in _PACKED
    if packed:
        suffixes.pop()
    last = suffixes[-1] if suffixes else ""
    if last in _LAYOUTS:
        return _LAYOUTS[last]
    if packed:  # notes.gz, or v1.2.gz: a packed file of no telling name is plain text
        return "text"
    raise CorpusError(f"{path} has a name that does not say what it holds; {_EXPECTED}")


@contextlib.contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        if path.is_dir():
            raise CorpusError(f"{path} is a folder; name the text files inside it")
        yield
    except FileNotFoundError as error:
        raise CorpusError(f"{path} does not exist; {_EXPECTED}") from error
    except OSError as error:
        raise CorpusError(
            f"cannot read {path}: {error.strerror or error}; check the file and its permissions"
        ) from error
    except ValueError as error:  # a NUL in the name itself
        raise CorpusError(f"{str(path)!a} cannot be a file name ({error}); {_EXPECTED}") from error


@dataclass(frozen=True)
class Piece:
    """Some uncompressed bytes, and how many stored bytes had been read when they came out."""

    data: bytes
    position: int


def pieces(source: Source) -> Iterator[Piece]:
    """The uncompressed bytes of a source in order; damage is raised after every byte that came before it."""
    if source.given.startswith("builtin:"):
        data = builtin.python_docs()
        yield Piece(data, len(data))
    elif source.given.startswith("hub:"):
        yield from _hub_pieces(source.given)
    else:
        yield from _file_pieces(source)


def _file_pieces(source: Source) -> Iterator[Piece]:
    path = Path(source.given)
    with _readable(path), path.open("rb") as stream:
        unpack = {".gz": _gzip_pieces, ".zst": _zstd_pieces}.get(path.suffix.lower(), _plain_pieces)
        yield from unpack(stream, source)


def _plain_pieces(stream: IO[bytes], source: Source) -> Iterator[Piece]:
    while data := stream.read(_PIECE_BYTES):
        yield Piece(data, stream.tell())


def _gzip_pieces(stream: IO[bytes], source: Source) -> Iterator[Piece]:
    if not source.num_bytes:
        raise DamagedSourceError(f"{source.given} is an empty file, not a gzip one; fetch it again")
    with gzip.GzipFile(fileobj=stream) as unpacked:
        while True:
            try:
                data = unpacked.read(_PIECE_BYTES)
            except (EOFError, gzip.BadGzipFile, zlib.error) as error:
                raise DamagedSourceError(f"{source.given} is a damaged gzip file ({error}); fetch it again") from error
            if not data:
                return
            yield Piece(data, stream.tell())


def _zstd_pieces(stream: IO[bytes], source: Source) -> Iterator[Piece]:
    import zstandard

    # The library's stream reader takes an early end for the end; a decompression object says whether a frame closed.
    frame, started = zstandard.ZstdDecompressor().decompressobj(), False
    while packed := stream.read(_ZSTD_BYTES):
        while packed:
            if frame.eof:
                frame = zstandard.ZstdDecompressor().decompressobj()
            started = True
            try:
                data = frame.decompress(packed)
            except zstandard.ZstdError as error:
                raise DamagedSourceError(f"{source.given} is a damaged zstd file ({error}); fetch it again") from error
            packed = frame.unused_data if frame.eof else b""
            for start in range(0, len(data), _PIECE_BYTES):
                yield Piece(data[start : start + _PIECE_BYTES], stream.tell())
    if not (started and frame.eof):
        raise DamagedSourceError(f"{source.given} is a damaged zstd file (it ends early); fetch it again")


def _hub_parts(given: str) -> tuple[str, str | None, str]:
    """hub:OWNER/NAME[:CONFIG][@SPLIT] as (id, configuration, split)."""
    rest, _, split = given.removeprefix("hub:").partition("@")
    name, _, config = rest.partition(":")
    if not name:
        raise CorpusError(f"{given} names no data set; expected hub:OWNER/NAME[:CONFIG][@SPLIT]")
    return name, config or None, split or "train"


def _hub_pieces(given: str) -> Iterator[Piece]:
    try:
        import datasets
    except ImportError as error:
        raise MissingExtraError(f"{given} needs the datasets package; pip install 'sparsebert[datasets]'") from error
    name, config, split = _hub_parts(given)
    try:
        rows = iter(datasets.load_dataset(name, config, split=split, streaming=True))
    except Exception as error:  # the library raises errors of a dozen packages here
        raise CorpusError(f"cannot open {given} ({error}); check the name, the split and the network") from error
    while True:
        try:
            row = next(rows, None)
        except Exception as error:  # as above: the network, a parser, or a remote script
            raise CorpusError(f"reading {given} failed ({error}); run the same command again to resume") from error
        if row is None:
            return
        # A row without a proper text goes on as it is: the JSON Lines reader says what is wrong with it, by number.
        text = row.get("text") if isinstance(row, dict) else None
        yield Piece(json.dumps({"text": text}).encode() + b"\n", 0)
