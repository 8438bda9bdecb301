"""Pattern files: sealed safetensors, checked entry by entry before anything uses them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sparsebert.errors import FileError, PatternError
from sparsebert.files import open_sealed_tensors, read_bytes, seal_tensors, write_atomic

if TYPE_CHECKING:
    from sparsebert.patterns.pattern import Pattern

FORMAT = 1


def save(pattern: Pattern, path: Path) -> None:
    write_atomic(path, to_bytes(pattern))


def load(path: Path, kind: type[Pattern]) -> Pattern:
    return from_bytes(read_bytes(path), path, kind)


def to_bytes(pattern: Pattern) -> bytes:
    about = {
        "kind": "pattern",
        "format": FORMAT,
        "heads": pattern.heads,
        "length": pattern.length,
        "anchor": pattern.anchor,
        "rule": pattern.rule,
    }
    return seal_tensors({"row_starts": pattern.row_starts, "keys": pattern.keys}, about)


def from_bytes(data: bytes, path: Path, kind: type[Pattern]) -> Pattern:
    """kind: Pattern itself, which calls this and so cannot be imported here."""
    tensors, about = open_sealed_tensors(data, path)
    if about.get("kind") != "pattern":
        raise FileError(f"{path} holds a {about.get('kind')!r}; expected a pattern saved by Pattern.save")
    if about.get("format") != FORMAT:
        raise FileError(f"{path} has pattern format {about.get('format')!r}; this version reads format {FORMAT}")
    if sorted(tensors) != ["keys", "row_starts"]:
        raise FileError(f"{path} holds tensors {sorted(tensors)}; expected keys and row_starts")
    try:
        return kind(
            int(about["heads"]),
            int(about["length"]),
            tensors["row_starts"],
            tensors["keys"],
            about["anchor"],
            about["rule"],
        )
    except (KeyError, TypeError, ValueError) as error:
        raise FileError(f"{path} lacks a field of a pattern file ({error}); save the pattern again") from error
    except PatternError as error:
        raise PatternError(f"{path}: {error}") from error
