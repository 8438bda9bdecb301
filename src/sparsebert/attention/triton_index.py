"""What the Triton kernels walk: a pattern as offsets where it is made of them, else as lists, in the GPU's memory.

Pattern (CSR) --has it a shape?--> offsets a head and a border   n numbers a head, nothing is looked up an entry
              --else-------------> rows (CSR) and columns (CSC)   16 bytes an entry
Lines that meet more than PIECE tokens are cut into pieces of that many.
"""

import weakref
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from jaxtyping import Int32, Int64
from torch import Tensor

from sparsebert.errors import AttentionError
from sparsebert.patterns import Pattern

PIECE = 256  # entries of a long line that one program walks

# A compiled graph knows an index by its name alone, and builds it again from the pattern when it is not at hand.
_patterns: "weakref.WeakValueDictionary[str, Pattern]" = weakref.WeakValueDictionary()


@dataclass(frozen=True, eq=False)
class CutLines:
    """Long lines of one side (rows or columns), cut up."""

    pieces: Int64[Tensor, "pieces 4"]  # head of the pattern, place, where the stretch begins and ends
    lines: Int64[Tensor, "lines 4"]  # head of the pattern, place, first piece, one past the last piece


@dataclass(frozen=True, eq=False)
class Index:
    """A pattern as inputs of one length see it, on one device; tensors that its kind does not need are empty."""

    heads: int
    positions: int  # of the pattern
    kept: int
    token: bool  # each example's last token plays the pattern's last position
    shifted: bool  # offsets and a border, not lists
    border: bool
    row_starts: Int64[Tensor, "heads positions_and_one"]
    offsets: Int32[Tensor, " offsets"]
    bounds: Int32[Tensor, " heads_and_one"]  # of the offsets of each head
    bases: Int64[Tensor, "heads positions"]  # the entry of a row's offset t is bases + t
    keys: Int32[Tensor, " kept"]
    column_starts: Int64[Tensor, "heads positions_and_one"]
    queries: Int32[Tensor, " kept"]
    entries: Int64[Tensor, " kept"]  # which entry of the rows each entry of the columns is
    row_pieces: CutLines
    column_pieces: CutLines


def name_of(pattern: Pattern, length: int, device: torch.device) -> str:
    """A name under which find() gives the index of a pattern for inputs of this length."""
    _patterns.setdefault(pattern.digest, pattern)
    return f"{pattern.digest}/{length}/{device}"


@lru_cache(maxsize=16)
def find(name: str) -> Index:
    """An index by its name, built where it is not at hand."""
    digest, length, device = name.split("/")
    pattern = _patterns.get(digest)
    if pattern is None:
        raise AttentionError("the pattern of a compiled or saved attention call is gone; keep a reference to it")
    with torch.inference_mode(False):  # what is kept may be trained with later
        return build(pattern, int(length), torch.device(device))


def build(pattern: Pattern, length: int, device: torch.device) -> Index:
    """The index of a pattern for inputs of this length, built anew."""
    lines = shape_of(pattern)
    about = (pattern.heads, pattern.length, pattern.kept, pattern.anchor == "token")
    starts = torch.from_numpy(pattern.row_starts.copy()).to(device)
    none32, none64 = torch.empty(0, dtype=torch.int32, device=device), torch.empty(0, dtype=torch.int64, device=device)
    if lines is not None:
        offsets, border = lines
        flat, bounds, bases = (torch.from_numpy(array).to(device) for array in _steps(pattern, offsets, border))
        edge = _border_pieces(pattern, length if border else 0, device)
        return Index(
            *about, True, border, starts, flat, bounds, bases, none32, none64, none32, none64, edge, edge
        )  # fmt: skip
    columns = _transposed(pattern)
    keys, column_starts, queries, entries = (
        torch.from_numpy(array).to(device) for array in (pattern.keys.copy(), *columns)
    )
    pieces = _pieces(pattern.row_starts, device), _pieces(columns[0], device)
    return Index(
        *about, False, False, starts, none32, none32, none64, keys, column_starts, queries, entries, *pieces
    )  # fmt: skip


def shape_of(pattern: Pattern) -> tuple[list[Int32[np.ndarray, " offsets"]], bool] | None:
    """The offsets of each head and whether there is a border, if the pattern is exactly that; else None."""
    heads = range(pattern.heads)
    border = all(_has_border(pattern, head) for head in heads)
    offsets = [_offsets(pattern, head, border) for head in heads]
    return None if any(each is None for each in offsets) else ([each for each in offsets if each is not None], border)


def _has_border(pattern: Pattern, head: int) -> bool:
    starts, last = pattern.row_starts[head], pattern.length - 1
    counts = np.diff(starts)
    if counts.min() == 0 or counts[0] <= last or counts[-1] <= last:
        return False
    return bool((pattern.keys[starts[:-1]] == 0).all() and (pattern.keys[starts[1:] - 1] == last).all())


def _offsets(pattern: Pattern, head: int, border: bool) -> Int32[np.ndarray, " offsets"] | None:
    """The lines that a head keeps inside the border; None where one of them is kept in part."""
    starts, length, edge = pattern.row_starts[head], pattern.length, int(border)
    rows = np.repeat(np.arange(length), np.diff(starts))
    keys = pattern.keys[starts[0] : starts[-1]]
    if border:
        inside = (rows > 0) & (rows < length - 1) & (keys > 0) & (keys < length - 1)
        rows, keys = rows[inside], keys[inside]
    counts = np.bincount(keys - rows + length - 1, minlength=2 * length - 1)
    found = np.flatnonzero(counts)
    offsets = (found - (length - 1)).astype(np.int32)
    return offsets if (counts[found] == length - 2 * edge - np.abs(offsets)).all() else None


def _steps(pattern: Pattern, offsets: list[np.ndarray], border: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All offsets in one row, where each head's begin, and the entry that a row's offset 0 would be."""
    bounds = np.cumsum([0, *(len(each) for each in offsets)]).astype(np.int32)
    edge, places = int(border), np.arange(pattern.length)
    before = np.stack([np.searchsorted(each, edge - places) for each in offsets])
    return np.concatenate(offsets), bounds, pattern.row_starts[:, :-1] + edge - before


def _transposed(pattern: Pattern) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Column starts, the queries of each column in rising order, and which entry of the rows each is."""
    starts, length = pattern.row_starts, pattern.length
    column_starts = np.empty_like(starts)
    queries, entries = np.empty(pattern.kept, np.int32), np.empty(pattern.kept, np.int64)
    for head in range(pattern.heads):
        mine = slice(int(starts[head, 0]), int(starts[head, -1]))
        keys = pattern.keys[mine]
        order = np.argsort(keys, kind="stable")
        rows = np.repeat(np.arange(length, dtype=np.int32), np.diff(starts[head]))
        queries[mine], entries[mine] = rows[order], order + mine.start
        column_starts[head] = mine.start + np.concatenate([[0], np.cumsum(np.bincount(keys, minlength=length))])
    return column_starts, queries, entries


def _pieces(starts: Int64[np.ndarray, "heads positions_and_one"], device: torch.device) -> CutLines:
    """The stretches of every line that has more than PIECE entries."""
    heads, places = np.nonzero(np.diff(starts) > PIECE)
    stretches = [(starts[h, p], starts[h, p + 1]) for h, p in zip(heads, places, strict=True)]
    return _cut(list(zip(heads.tolist(), places.tolist(), strict=True)), stretches, device)


def _border_pieces(pattern: Pattern, length: int, device: torch.device) -> CutLines:
    """The stretches of the first and the last line; none where there is no border."""
    ends = sorted({0, pattern.length - 1}) if length else []
    lines = [(head, place) for head in range(pattern.heads) for place in ends]
    return _cut(lines, [(0, length)] * len(lines), device)


def _cut(lines: list[tuple[int, int]], stretches: list[tuple[int, int]], device: torch.device) -> CutLines:
    pieces: list[tuple[int, ...]] = []
    table: list[tuple[int, ...]] = []
    for line, (begin, end) in zip(lines, stretches, strict=True):
        first = len(pieces)
        pieces += [(*line, at, min(at + PIECE, end)) for at in range(begin, end, PIECE)]
        table.append((*line, first, len(pieces)))
    return CutLines(*(torch.tensor(rows, dtype=torch.int64, device=device).reshape(-1, 4) for rows in (pieces, table)))
