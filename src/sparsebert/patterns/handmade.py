"""The six hand-made patterns of the paper's first figure; defaults give the paper's sparsities at n = 128.

Distances are |i - j|. docs/paper-map.md says which reading of the paper's text each default takes.
"""

from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np

from sparsebert.errors import PatternError
from sparsebert.patterns.builders import at_least, check_size, drawn_heads, require_room, same_heads
from sparsebert.patterns.entries import Entries, column_entries, cross_entries, offset_entries, union, window_entries
from sparsebert.patterns.pattern import Pattern
from sparsebert.settings import Range, fits

# The paper's text gives Longformer a window of 2; only 5 gives the sparsity printed in its tables.
LONGFORMER_RADIUS = {"table": 5, "text": 2}


def strided(length: int, heads: int = 1, *, stride: int = 4) -> Pattern:
    """Distances below the stride, and every multiple of it (Child et al., 2019)."""
    at_least("strided", "stride", stride, 1)
    require_room("strided", length, heads, lambda: length * min(length / stride, length))
    distances = [distance for distance in range(length) if distance < stride or distance % stride == 0]
    return same_heads("strided", length, heads, lambda: _distance_entries(length, distances), stride=stride)


def fixed(length: int, heads: int = 1, *, stride: int = 4, summary: int = 1) -> Pattern:
    """One's own block, and the last `summary` columns of every block (Child et al., 2019)."""
    at_least("fixed", "stride", stride, 1)
    if at_least("fixed", "summary", summary, 0) > stride:
        raise PatternError(f"fixed was given summary={summary}; it must lie between 0 and the stride, {stride}")
    require_room("fixed", length, heads, lambda: length * summary * (length // stride))

    def entries() -> Entries:
        rows = np.arange(length, dtype=np.int64)
        columns = (rows // stride * stride)[:, None] + np.arange(stride)
        own_block = (rows[:, None] * length + columns)[columns < length]
        summaries = [column for column in range(length) if column % stride >= stride - summary]
        return union([own_block, *(column_entries(length, column) for column in summaries)])

    return same_heads("fixed", length, heads, entries, stride=stride, summary=summary)


def log_sparse(length: int, heads: int = 1) -> Pattern:
    """Distances 0, 1, 2, 4, 8, ... both ways (Li et al., 2019)."""
    check_size("log_sparse", length, heads)
    distances = [0, *(2**power for power in range((length - 1).bit_length()))]
    return same_heads("log_sparse", length, heads, lambda: _distance_entries(length, distances))


def star(length: int, heads: int = 1) -> Pattern:
    """Neighbours, and the first token as relay (Guo et al., 2019)."""
    return same_heads("star", length, heads, lambda: union([window_entries(length, 1), cross_entries(length, 0)]))


def longformer(
    length: int,
    heads: int = 1,
    *,
    reading: Literal["table", "text"] = "table",
    radius: int | None = None,
    num_globals: int = 2,
    globals_at: Sequence[int] | None = None,
    seed: int = 0,
) -> Pattern:
    """A window, and a few global tokens drawn at random or given (Beltagy et al., 2020)."""
    if reading not in LONGFORMER_RADIUS:
        raise PatternError(f"longformer was given reading={reading!r}; expected 'table' or 'text'")
    reach = at_least("longformer", "radius", LONGFORMER_RADIUS[reading] if radius is None else radius, 0)
    at_least("longformer", "num_globals", num_globals, 0)
    require_room("longformer", length, heads, lambda: length * min(2 * reach + 1, length))
    if globals_at is not None and not fits(list(globals_at), Sequence[Annotated[int, Range(0, length - 1)]]):
        raise PatternError(f"longformer was given globals_at={list(globals_at)}; expected positions below {length}")

    def entries(generator: np.random.Generator) -> Entries:
        positions = _globals(generator, length, num_globals) if globals_at is None else globals_at
        return union([window_entries(length, reach), *(cross_entries(length, int(at)) for at in positions)])

    given = None if globals_at is None else [int(position) for position in globals_at]
    return drawn_heads(
        "longformer", length, heads, seed, entries, radius=reach, num_globals=num_globals, globals_at=given
    )


def big_bird(
    length: int, heads: int = 1, *, radius: int = 1, num_globals: int = 2, num_random: int = 2, seed: int = 0
) -> Pattern:
    """A window, a few global tokens, and a few random keys for every query (Zaheer et al., 2020)."""
    at_least("big_bird", "radius", radius, 0)
    at_least("big_bird", "num_globals", num_globals, 0)
    at_least("big_bird", "num_random", num_random, 0)
    require_room("big_bird", length, heads, lambda: length * max(min(2 * radius + 1, length), num_random))

    def entries(generator: np.random.Generator) -> Entries:
        positions = _globals(generator, length, num_globals)
        # Random keys come from all columns, so they may fall on what is kept already, as the paper's figure implies.
        keys = generator.integers(0, length, (length, num_random), dtype=np.int64)
        scattered = (np.arange(length, dtype=np.int64)[:, None] * length + keys).reshape(-1)
        crosses = [cross_entries(length, int(position)) for position in positions]
        return union([window_entries(length, radius), scattered, *crosses])

    return drawn_heads(
        "big_bird", length, heads, seed, entries, radius=radius, num_globals=num_globals, num_random=num_random
    )


def _globals(generator: np.random.Generator, length: int, count: int) -> np.ndarray:
    if not 0 <= count <= length:
        raise PatternError(f"asked for {count} global tokens among {length}; choose a number in between")
    return generator.choice(length, count, replace=False)


def _distance_entries(length: int, distances: Sequence[int]) -> Entries:
    offsets = sorted({sign * distance for distance in distances if distance < length for sign in (-1, 1)})
    return union(offset_entries(length, offset) for offset in offsets)
