"""What the kernel walks: a pattern's rows and columns at one input length, built once and kept for the next call.

Pattern (CSR, its full length) --crop--> rows (CSR) --transpose--> columns (CSC) --survey--> tiles, long lines

The arrays are built, checked and owned in C++ (csrc/index.cpp); Python holds a number.
"""

import functools
import threading
import weakref
from collections import OrderedDict

import numpy as np
import torch
from jaxtyping import Int32, Int64
from numpy import ndarray
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes

from sparsebert.attention.sparse_library import checked, library
from sparsebert.errors import AttentionError
from sparsebert.patterns import Pattern
from sparsebert.patterns.pattern import digest_of

# Of indices kept, least recently used first to go. One of each pattern that somebody holds stays: the layers of a model
# take turns, and each would find its index thrown out for the others'.
_CACHED_BYTES = 256 * 2**20
# The parts of an index, numbered as in csrc/sparse_attention.h.
STARTS, OTHERS, ENTRIES, LONGS, ORIGIN = range(5)

_lock = threading.Lock()
_recent: "OrderedDict[tuple[str, int], Indices]" = OrderedDict()
_rows: "weakref.WeakKeyDictionary[Pattern, tuple[Tensor, Tensor]]" = weakref.WeakKeyDictionary()


class Indices:
    """Both sides of a pattern as inputs of `length` tokens see it."""

    def __init__(self, starts: Int64[Tensor, "heads positions"], keys: Int32[Tensor, " all"], token: bool, length: int):
        if (starts.dtype, keys.dtype, starts.ndim, keys.ndim) != (torch.int64, torch.int32, 2, 1) or not len(starts):
            raise AttentionError(
                f"rows are {starts.dtype} {list(starts.shape)} and keys {keys.dtype} {list(keys.shape)}; "
                "expected int64 [heads, n + 1] and int32 [kept]"
            )
        starts, keys = starts.contiguous(), keys.contiguous()
        self.heads, self.length, self.token = starts.shape[0], length, token
        number = library().sb_index_build(
            starts.data_ptr(),
            starts.numel(),
            keys.data_ptr(),
            keys.numel(),
            starts.shape[0],
            starts.shape[1] - 1,
            length,
            int(token),
        )
        checked(-min(number, 0))
        self.number = int(number)
        weakref.finalize(self, library().sb_index_free, self.number)
        self.kept = int(library().sb_index_count(self.number, 0, OTHERS))

    @property
    def num_bytes(self) -> int:
        return 20 * self.kept + 16 * self.heads * self.length  # row and column starts, others, entries, origin

    @functools.cached_property
    def origin(self) -> Int64[Tensor, " kept"] | None:
        """Where each entry stands among the whole pattern's; None: in the same place."""
        place = self.part(0, ORIGIN, np.int64)
        return torch.from_numpy(place) if len(place) or not self.kept else None

    def part(self, columns: int, part: int, dtype: type) -> ndarray:
        """A copy of one of the arrays that C++ holds: of the rows, or of the columns."""
        count = int(library().sb_index_count(self.number, columns, part))
        checked(-min(count, 0))
        found: ndarray = np.empty(count, dtype)
        checked(library().sb_index_copy(self.number, columns, part, found.ctypes.data, found.nbytes))
        return found


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def rows_of(pattern: Pattern) -> tuple[Int64[Tensor, "heads positions"], Int32[Tensor, " all"]]:
    """A pattern's rows as tensors: what a call of the operator carries, so that a saved graph has its pattern."""
    with _lock:
        if pattern not in _rows:
            # Whoever traces this call must find real numbers, not the shapes it traces with; and a call that only
            # infers must leave tensors that a later one can train with.
            with _disable_current_modes(), torch.inference_mode(False):
                _rows[pattern] = (torch.tensor(pattern.row_starts), torch.tensor(pattern.keys))
        return _rows[pattern]


def indices_for(starts: Tensor, keys: Tensor, digest: str, token: bool, length: int) -> Indices:
    """The index of a pattern's rows at one input length, from the cache where it is there."""
    name = (digest, length)
    with _lock:
        if name in _recent:
            _recent.move_to_end(name)
            return _recent[name]
    if digest_of(starts.numpy(), keys.numpy(), "token" if token else "position") != digest:
        raise AttentionError(
            "the rows of an attention call are not the pattern's that it names; export the model again"
        )
    found = Indices(starts, keys, token, length)
    with _lock:
        _recent[name] = found
        _make_room()
    return found


def _make_room() -> None:
    held = sum(each.num_bytes for each in _recent.values())
    if held <= _CACHED_BYTES:
        return
    in_use = {pattern.digest for pattern in _rows}
    latest = dict(_recent.keys())  # of each pattern, in order of use
    newest = next(reversed(_recent))
    for name in list(_recent):
        digest, length = name
        if held > _CACHED_BYTES and name != newest and not (digest in in_use and latest[digest] == length):
            held -= _recent.pop(name).num_bytes
