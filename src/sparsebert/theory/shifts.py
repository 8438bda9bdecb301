"""What the attention layers compute, in closed form, for many inputs at once.

`levels` holds one input a row, ascending; numpy int64 where the numbers fit, Python integers (dtype object) where not.
Numbers after a global shift are kept as digits to the base G = `global_gain`, so that they too fit.
"""

from typing import Any

import numpy as np
from jaxtyping import Shaped

from sparsebert.theory.grid import Grid

Integers = Shaped[np.ndarray, "inputs tokens"]  # int64, or object holding Python integers
Digits = tuple[Shaped[np.ndarray, "inputs tokens"], ...]


def integer_type(grid: Grid) -> type:
    """int64 where every shifted level and every digit is far from overflow, else Python's integers."""
    # The largest intermediate is below 4·N^(n+1); the factor 16 leaves room for sums.
    return np.int64 if 16 * grid.num_levels ** (grid.tokens + 1) < 2**63 else object


def shifted(levels: Integers, gain: int) -> Integers:
    """The levels after all selective shifts (the paper's l~ in units of delta)."""
    result = np.empty_like(levels)
    last = levels.shape[1] - 1
    result[:, 0] = levels[:, 0] + gain * (levels[:, last] - levels[:, 1])
    for i in range(1, last):
        result[:, i] = levels[:, i] + gain * (result[:, i - 1] - levels[:, i + 1])
    result[:, last] = levels[:, last] + gain * (result[:, last - 1] - result[:, 0])
    return result


def expanded(levels: Integers, gain: int, token: int) -> Any:
    """The paper's expansion of the shifted level of one token, counted from 0."""
    last = levels.shape[1] - 1
    spread = levels[:, last] - levels[:, 1]
    steps = sum(
        ((levels[:, j] - levels[:, j + 2]) * gain ** (token - j) for j in range(min(token, last - 1))),
        start=np.zeros_like(spread),
    )
    total = spread * gain ** (token + 1) + steps + levels[:, token]
    if token == last:
        total = total - spread * gain**2 + (levels[:, last - 1] - levels[:, 0]) * gain
    return total


def normalised(digits: Digits, base: int) -> Digits:
    """The same numbers with every digit but the first in 0 .. base-1, so that digits compare as numbers do."""
    carried = list(digits)
    for place in range(len(carried) - 1, 0, -1):
        carried[place - 1] = carried[place - 1] + carried[place] // base
        carried[place] = carried[place] % base
    return tuple(carried)


def after_first_global_shift(moved: Integers) -> Digits:
    """Digits (1, 0) of the levels after one global shift: every token adds G times the largest other one."""
    high = np.repeat(moved[:, -1:], moved.shape[1], axis=1)
    high[:, -1] = moved[:, -2]
    return high, moved


def after_second_global_shift(moved: Integers) -> Digits:
    """Digits (2, 1, 0) of the contexts q: the paper's expansion, not normalised."""
    high = np.repeat(moved[:, -1:], moved.shape[1], axis=1)
    middle = high + moved[:, -2:-1]
    middle[:, -2] = moved[:, -3] + moved[:, -1]
    middle[:, -1] = 2 * moved[:, -2]
    return high, middle, moved


def as_integer(digits: tuple[int, ...], base: int) -> int:
    """One number from its digits, highest first."""
    total = 0
    for digit in digits:
        total = total * base + int(digit)
    return total
