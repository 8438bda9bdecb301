"""The attention layers of the construction in exact arithmetic, on any pattern: hardmax heads of size one."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from sparsebert.theory.grid import Grid, Number

Keys = Sequence[Sequence[int]]  # for each query, the tokens it may attend to
Rows = list[list[Number]]


def every_other(tokens: int) -> Keys:
    """The pattern of the theorem: everything but the diagonal."""
    return [[j for j in range(tokens) if j != i] for i in range(tokens)]


def blocks(tokens: int, size: int) -> Keys:
    """A pattern that cannot carry information between blocks, without the diagonal."""
    return [[j for j in range(tokens) if j != i and j // size == i // size] for i in range(tokens)]


def levels_of(rows: Rows, grid: Grid) -> list[Number]:
    if grid.width == 1:
        return [row[0] for row in rows]
    return [sum((a * b for a, b in zip(row, grid.direction, strict=True)), start=0) for row in rows]


def head(levels: Sequence[Number], doubled_threshold: Number, keys: Keys) -> list[Number]:
    """psi: the largest level attended to where a token lies above the threshold, the smallest where below.

    The score of a key is (own level - threshold) * key's level, so only the sign of the first factor matters; on the
    threshold itself all scores are equal. The threshold comes doubled, to stay with integers.
    """
    return [
        _hardmax(2 * level - doubled_threshold, [levels[j] for j in row])
        for level, row in zip(levels, keys, strict=True)
    ]


def _hardmax(factor: Number, values: Sequence[Number]) -> Number:
    """All weight on the highest score, shared among equal ones; 0 where there is nobody to attend to."""
    if not values:
        return 0
    if factor:
        return max(values) if factor > 0 else min(values)
    mean = Fraction(sum(values), len(values))
    return mean.numerator if mean.denominator == 1 else mean


@dataclass(frozen=True)
class Step:
    """One attention layer: its name, and the rows after it."""

    name: str  # "shift 3", "global 1", "global 2"
    rows: Rows


def _added(rows: Rows, amounts: Sequence[Number]) -> Rows:
    """The heads write along the first axis only."""
    return [[row[0] + amount, *row[1:]] for row, amount in zip(rows, amounts, strict=True)]


def selective_shift(rows: Rows, grid: Grid, level: int, keys: Keys) -> Rows:
    """Two heads: a token at this level gains N times (max - min) of those it attends to; the others stay."""
    levels = levels_of(rows, grid)
    lower, upper = head(levels, 2 * level - 1, keys), head(levels, 2 * level + 1, keys)
    return _added(rows, [grid.local_gain * (a - b) for a, b in zip(lower, upper, strict=True)])


def global_shift(rows: Rows, grid: Grid, keys: Keys) -> Rows:
    """One head: every token gains G times the largest level that it attends to."""
    return _added(rows, [grid.global_gain * value for value in head(levels_of(rows, grid), 0, keys)])


def attention_layers(rows: Rows, grid: Grid, keys: Keys | None = None) -> Iterator[Step]:
    """g_c, layer by layer: a selective shift for each level in increasing order, then two global shifts."""
    keys = every_other(grid.tokens) if keys is None else keys
    for level in range(grid.num_levels):
        rows = selective_shift(rows, grid, level, keys)
        yield Step(f"shift {level}", rows)
    for number in (1, 2):
        rows = global_shift(rows, grid, keys)
        yield Step(f"global {number}", rows)


def contexts(rows: Rows, grid: Grid, keys: Keys | None = None) -> list[Number]:
    """q = g_c(G)u for one quantised (and, where the grid is marked, marked) input."""
    for step in attention_layers(rows, grid, keys):
        rows = step.rows
    return levels_of(rows, grid)
