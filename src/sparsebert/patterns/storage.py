"""Pattern files: sealed safetensors, checked entry by entry before anything uses them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparsebert.errors import FileError, PatternError
from sparsebert.files import open_sealed_tensors, read_bytes, seal_tensors, write_atomic
from sparsebert.patterns.ranking import Ranking

if TYPE_CHECKING:
    import numpy as np

    from sparsebert.patterns.pattern import Pattern

# The first format knows one layer and no ranking, and is written wherever it will do: equal patterns give equal bytes
# in every version, and a version that knows only the first refuses what it would misread.
FORMAT, FORMAT_WITH_LAYERS, FORMAT_DIRECTED = 1, 2, 3
_KNOWN = (FORMAT, FORMAT_WITH_LAYERS, FORMAT_DIRECTED)


def save(pattern: Pattern, path: Path) -> None:
    write_atomic(path, to_bytes(pattern))


def load(path: Path, kind: type[Pattern]) -> Pattern:
    return from_bytes(read_bytes(path), path, kind)


def to_bytes(pattern: Pattern) -> bytes:
    about: dict[str, Any] = {
        "kind": "pattern",
        "format": FORMAT,
        "heads": pattern.heads,
        "length": pattern.length,
        "anchor": pattern.anchor,
        "rule": pattern.rule,
    }
    tensors = {"row_starts": pattern.row_starts, "keys": pattern.keys}
    if pattern.layers > 1 or pattern.ranking is not None:
        about |= {"format": FORMAT_WITH_LAYERS, "layers": pattern.layers}
    if pattern.ranking is not None:
        about |= {"border": pattern.ranking.border}
        about |= {"format": FORMAT_DIRECTED} if pattern.ranking.directed else {}
        tensors |= {"ranking": pattern.ranking.units}
    return seal_tensors(tensors, about)


def from_bytes(data: bytes, path: Path, kind: type[Pattern]) -> Pattern:
    """kind: Pattern itself, which calls this and so cannot be imported here."""
    tensors, about = open_sealed_tensors(data, path)
    if about.get("kind") != "pattern":
        raise FileError(f"{path} holds a {about.get('kind')!r}; expected a pattern saved by Pattern.save")
    if about.get("format") not in _KNOWN:
        raise FileError(
            f"{path} has pattern format {about.get('format')!r}; this version reads {FORMAT} to {_KNOWN[-1]}"
        )
    is_first = about["format"] == FORMAT
    if set(tensors) - ({"ranking"} if not is_first else set()) != {"keys", "row_starts"}:
        raise FileError(f"{path} holds tensors {sorted(tensors)}; expected keys and row_starts")
    try:
        return kind(
            int(about["heads"]),
            int(about["length"]),
            tensors["row_starts"],
            tensors["keys"],
            about["anchor"],
            about["rule"],
            1 if is_first else int(about["layers"]),
            _ranking(tensors["ranking"], about) if "ranking" in tensors else None,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise FileError(f"{path} lacks a field of a pattern file ({error}); save the pattern again") from error
    except PatternError as error:
        raise PatternError(f"{path}: {error}") from error


def _ranking(units: np.ndarray, about: dict[str, Any]) -> Ranking:
    return Ranking(units, bool(about["border"]), about["format"] == FORMAT_DIRECTED)
