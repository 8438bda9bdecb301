"""What the kernel walks: a pattern's rows and columns at one input length, built once and kept for the next call.

Pattern (CSR, its full length) --crop--> rows (CSR) --transpose--> columns (CSC) --survey--> tiles, long lines
"""

import ctypes
import dataclasses
import functools
import itertools
import threading
import weakref
from collections import OrderedDict
from collections.abc import Sequence

import numpy as np
from jaxtyping import Int32, Int64
from numpy import ndarray

from sparsebert.attention.sparse_library import MAX_LONG, TILE, Side, library
from sparsebert.errors import AttentionError
from sparsebert.patterns import Pattern

_CACHED_BYTES = 256 * 2**20  # of indices kept, least recently used first to go; the one in use always stays
_MOST_PER_HEAD = 2**31 - 1  # a column's map to its rows' entries is 32 bits wide, counted from the head's first

_lock = threading.Lock()
_recent: "OrderedDict[str, Indices]" = OrderedDict()
# A compiled graph knows an index by its name alone: whatever is alive can be found, or built again from its pattern.
_alive: "weakref.WeakValueDictionary[str, Indices]" = weakref.WeakValueDictionary()
_patterns: "weakref.WeakValueDictionary[str, Pattern]" = weakref.WeakValueDictionary()
_counter = itertools.count()


@dataclasses.dataclass(frozen=True, eq=False)
class IndexSide:
    """Rows (query -> keys) or columns (key -> queries) of an index."""

    starts: Int64[ndarray, "heads length_and_one"]
    others: Int32[ndarray, " kept"]
    entries: Int32[ndarray, " kept"] | None  # columns only: which entry of the rows, counted from the head's first
    low: Int32[ndarray, "heads tiles"]
    reach: Int32[ndarray, "heads tiles"]
    longs: Int32[ndarray, "heads long_lines"]

    @functools.cached_property
    def pointers(self) -> Side:
        """The arrays' addresses, valid as long as this object is."""
        fields = (self.starts, self.others, self.entries, self.low, self.reach, self.longs)
        return Side(*(None if field is None else field.ctypes.data for field in fields))


@dataclasses.dataclass(frozen=True, eq=False)
class Indices:
    """Both sides of a pattern as inputs of `length` tokens see it."""

    name: str
    heads: int
    length: int
    token: bool  # each example's last token plays the pattern's last position
    rows: IndexSide
    columns: IndexSide
    origin: Int64[ndarray, " kept"] | None  # where each entry stands among the pattern's; None: in the same place

    @property
    def kept(self) -> int:
        return len(self.rows.others)

    @functools.cached_property
    def num_bytes(self) -> int:
        return 20 * self.kept + 16 * self.heads * self.length  # row and column starts, others, entries, origin


def indices_for(pattern: Pattern, length: int) -> Indices:
    """The index of a pattern at one input length, from the cache where it is there."""
    _patterns.setdefault(pattern.digest, pattern)
    return find(f"{pattern.digest}/{length}")


def find(name: str) -> Indices:
    """An index by its name: recent, alive elsewhere, or built again."""
    with _lock:
        if name in _recent:
            _recent.move_to_end(name)
            return _recent[name]
        found = _alive.get(name)
    if found is None:
        digest, _, length = name.partition("/")
        pattern = _patterns.get(digest)
        if pattern is None:
            raise AttentionError("the pattern of a compiled or saved attention call is gone; keep a reference to it")
        found = build_indices(pattern, int(length))
        with _lock:
            _recent[name] = found
            while len(_recent) > 1 and sum(each.num_bytes for each in _recent.values()) > _CACHED_BYTES:
                _recent.popitem(last=False)
    return found


def build_indices(pattern: Pattern, length: int) -> Indices:
    """The index of a pattern at one input length, built anew."""
    starts, keys = pattern.row_starts, pattern.keys
    name, token = f"{pattern.digest}/{length}", pattern.anchor == "token"
    if length == pattern.length:
        return _indices(name, pattern.heads, length, token, starts, keys, None)
    shape = (pattern.heads, pattern.length, length, int(token))
    kept = library().sb_crop_count(*_pointers(starts, keys), *shape)
    new_starts = np.empty((pattern.heads, length + 1), np.int64)
    new_keys, origin = np.empty(kept, np.int32), np.empty(kept, np.int64)
    library().sb_crop(*_pointers(starts, keys), *shape, *_pointers(new_starts, new_keys, origin))
    return _indices(name, pattern.heads, length, token, new_starts, new_keys, origin)


def indices_from_offsets(length: int, offsets: Sequence[Sequence[int]], border: bool) -> Indices:
    """The index of a pattern of offsets (j - i, a list per head), built in C++ and not kept: for patterns that change
    at every step. Entries are in the order of patterns.from_offsets."""
    per_head = [sorted(set(head)) for head in offsets]
    bounds = np.array([0, *itertools.accumulate(map(len, per_head))], np.int64)
    flat = np.array([offset for head in per_head for offset in head], np.int64)
    shape = (len(per_head), length, int(border))
    kept = library().sb_offsets_count(*_pointers(bounds, flat), *shape)
    starts, keys = np.empty((len(per_head), length + 1), np.int64), np.empty(kept, np.int32)
    library().sb_offsets(*_pointers(bounds, flat), *shape, *_pointers(starts, keys))
    return _indices(f"offsets-{next(_counter)}/{length}", len(per_head), length, False, starts, keys, None)


def _indices(
    name: str, heads: int, length: int, token: bool, starts: ndarray, keys: ndarray, origin: ndarray | None
) -> Indices:
    largest = int((starts[:, -1] - starts[:, 0]).max())
    if largest > _MOST_PER_HEAD:
        raise AttentionError(
            f"a head keeps {largest} entries but backend 'sparse' takes at most {_MOST_PER_HEAD}; use a sparser pattern"
        )
    column_starts = np.empty((heads, length + 1), np.int64)
    queries, entries = np.empty(len(keys), np.int32), np.empty(len(keys), np.int32)
    library().sb_transpose(*_pointers(starts, keys), heads, length, *_pointers(column_starts, queries, entries))
    rows = _side(starts, keys, None, column_starts)
    columns = _side(column_starts, queries, entries, starts)
    built = Indices(name, heads, length, token, rows, columns, origin)
    with _lock:
        _alive[name] = built
    return built


def _side(starts: ndarray, others: ndarray, entries: ndarray | None, across: ndarray) -> IndexSide:
    heads, length = starts.shape[0], starts.shape[1] - 1
    low, reach = np.empty((2, heads, -(-length // TILE)), np.int32)
    longs = np.empty((heads, MAX_LONG), np.int32)
    library().sb_survey(*_pointers(starts, others, across), heads, length, *_pointers(low, reach, longs))
    return IndexSide(starts, others, entries, low, reach, longs)


def _pointers(*arrays: ndarray) -> tuple[ctypes.c_void_p, ...]:
    return tuple(ctypes.c_void_p(array.ctypes.data) for array in arrays)
