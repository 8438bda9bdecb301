"""The identity that the proof needs: any one entry of q gives back the whole input, and the index of the entry.

The last shifted level alone does not identify an input of an even number of tokens; the last two do, by peeling.
"""

from collections.abc import Sequence
from math import comb

import numpy as np

from sparsebert.errors import TheoryError
from sparsebert.theory import shifts
from sparsebert.theory.grid import Grid


def levels_from_last_two(before_last: int, last: int, tokens: int, gain: int) -> list[int]:
    """The input's levels, ascending, from its last two shifted levels.

    Every shifted level leaves its own level as remainder modulo N, and what remains after division is the shifted
    level of its left neighbour minus the level of its right neighbour, so the rest follows from right to left.
    """
    levels = [0] * tokens
    levels[-1] = last % gain
    moved, right = before_last, levels[-1]
    for token in range(tokens - 2, 0, -1):
        levels[token] = moved % gain
        moved, right = moved // gain + right, levels[token]
    levels[0] = moved % gain
    return levels


def decoded(entry: int, grid: Grid) -> tuple[list[int], int]:
    """The levels of the input, ascending, and the index of the token that this entry of q belongs to."""
    base = grid.global_gain
    rest, low = divmod(entry, base)
    high, middle = divmod(rest, base)
    if low == high:
        before_last = middle // 2
    elif low < middle - high:
        before_last = middle - high
    else:
        before_last = low
    levels = levels_from_last_two(before_last, high, grid.tokens, grid.local_gain)
    token = levels.index(low % grid.local_gain) if low % grid.local_gain in levels else 0
    # Peeling gives some levels for any number at all; only those of a context lead back to it.
    if levels != sorted(set(levels)) or _context(levels, token, grid) != entry:
        raise TheoryError(f"found {entry}, which is no entry of a context of this grid; pass an entry of q")
    return levels, token


def _context(levels: Sequence[int], token: int, grid: Grid) -> int:
    moved = shifts.shifted(np.array([levels], dtype=object), grid.local_gain)
    digits = shifts.after_second_global_shift(moved)
    return shifts.as_integer(tuple(part[0, token] for part in digits), grid.global_gain)


def num_twin_pairs(tokens: int, num_levels: int) -> int:
    """How many pairs of inputs share their last shifted level: none for odd n, else one for each room to move."""
    if tokens % 2:
        return 0
    half = tokens // 2
    # Moving every other token up by `step` needs `step` free levels after each of them: a shorter choice of levels.
    return sum(comb(num_levels - half * step, tokens) for step in range(1, num_levels // half + 1))
