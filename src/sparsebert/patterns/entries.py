"""Kept entries of one head as sorted flat numbers i * n + j, and as compressed rows.

Every builder is a union of a few of these pieces, so a pattern costs memory in kept entries, never n squared.
"""

from collections.abc import Iterable

import numpy as np
from jaxtyping import Int32, Int64

Entries = Int64[np.ndarray, " kept"]


def offset_entries(length: int, offset: int) -> Entries:
    """The line j - i = offset."""
    first = max(0, -offset)
    rows = np.arange(first, length - max(0, offset), dtype=np.int64)
    return rows * length + rows + offset


def row_entries(length: int, row: int) -> Entries:
    return row * length + np.arange(length, dtype=np.int64)


def column_entries(length: int, column: int) -> Entries:
    return np.arange(length, dtype=np.int64) * length + column


def cross_entries(length: int, position: int) -> Entries:
    """The row and the column of one position: it sees all, and all see it."""
    return union([row_entries(length, position), column_entries(length, position)])


def window_entries(length: int, radius: int) -> Entries:
    reach = min(radius, length - 1)
    return union(offset_entries(length, offset) for offset in range(-reach, reach + 1))


def border_entries(length: int) -> Entries:
    """First and last row and column."""
    return union([cross_entries(length, 0), cross_entries(length, length - 1)])


# The four sides of the border. Corners belong to the columns, so that no entry has two sides.
SIDES = ("left", "right", "top", "bottom")


def side_entries(length: int, side: str) -> Entries:
    """left, right: everyone sees the first or the last token. top, bottom: that token sees everyone in between."""
    if side in ("left", "right"):
        return column_entries(length, 0 if side == "left" else length - 1)
    return row_entries(length, 0 if side == "top" else length - 1)[1 : max(length - 1, 1)]


def inside_entries(length: int, offset: int) -> Entries:
    """The line j - i = offset, as far as it lies inside the border."""
    return offset_entries(length, offset)[1:-1]  # its two ends, and no other entry, lie on the border


def union(pieces: Iterable[Entries]) -> Entries:
    """Sorted, each entry once."""
    return np.unique(np.concatenate([np.empty(0, np.int64), *pieces]))


def compress(
    length: int, heads: Iterable[Entries]
) -> tuple[Int64[np.ndarray, "heads starts"], Int32[np.ndarray, "kept"]]:
    """Row starts and keys of sorted entries: the keys of query i of head h are keys[starts[h, i]:starts[h, i+1]]."""
    starts, keys, total = [], [], 0
    row_numbers = np.arange(length + 1, dtype=np.int64) * length
    for entries in heads:
        starts.append(total + np.searchsorted(entries, row_numbers).astype(np.int64))
        keys.append((entries % length).astype(np.int32))
        total += len(entries)
    return np.stack(starts), np.concatenate(keys)


def expand(length: int, starts: Int64[np.ndarray, " starts"], keys: Int32[np.ndarray, " kept"]) -> Entries:
    """Flat entries of one head; the inverse of `compress`."""
    rows = np.repeat(np.arange(length, dtype=np.int64), np.diff(starts))
    entries: Entries = rows * length + keys[starts[0] : starts[-1]]
    return entries
