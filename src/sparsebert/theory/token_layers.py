"""Token-wise layers of the construction: each reads one direction of a row, bends it in three pieces, writes another.

The same description is run exactly here, in float64 by `network`, and there also with ReLUs (Step 3).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from sparsebert.errors import TheoryError
from sparsebert.theory.grid import Grid, Number

Line = tuple[Number, Number]  # slope, value at 0
FLAT: Line = (0, 0)


@dataclass(frozen=True)
class ThreePieces:
    """A piecewise-linear function of three pieces, continuous from the right; it may jump."""

    low: Number
    high: Number
    below: Line = FLAT
    between: Line = FLAT
    above: Line = FLAT

    def __call__(self, value: Number) -> Number:
        slope, constant = self.below if value < self.low else self.between if value < self.high else self.above
        return slope * value + constant


@dataclass(frozen=True)
class TokenLayer:
    """row -> row + pieces(row·read) * write: a feed-forward layer with one hidden unit (r = 1)."""

    read: tuple[Number, ...]
    write: tuple[Number, ...]
    pieces: ThreePieces


def _unit(width: int, entry: int) -> tuple[int, ...]:
    return tuple(int(k == entry) for k in range(width))


def quantiser(grid: Grid) -> list[TokenLayer]:
    """g_q: entries x/delta are rounded down to integers, those outside [0, 1/delta) sent far below (Lemma 5 there).

    One layer for what is outside and one a cell, for each entry: d/delta + d layers. Where rows are marked, the last
    entry carries the position and runs to n/delta.
    """
    layers = []
    for entry in range(grid.width):
        axis = _unit(grid.width, entry)
        cells = grid.resolution * (grid.tokens if grid.marked and entry == grid.width - 1 else 1)
        away: Line = (-1, grid.outside)
        layers.append(TokenLayer(axis, axis, ThreePieces(0, cells, below=away, above=away)))
        layers += [TokenLayer(axis, axis, ThreePieces(k, k + 1, between=(-1, k))) for k in range(cells)]
    return layers


def value_map(
    outputs: Mapping[int, tuple[Sequence[Number], Sequence[Number]]], grid: Grid, bound: Number
) -> list[TokenLayer]:
    """g_v: one layer for each context, then those that clear rows whose context is none of them.

    `outputs` maps a context to (the row that carries it, the row wanted); `bound` exceeds |row wanted · u|.
    """
    if outputs and min(outputs) <= bound + 1:
        raise TheoryError(
            f"the function reaches {float(bound):.3g} along u, as high as the lowest context {min(outputs)}; "
            "scale the function down"
        )
    half = Fraction(1, 2)
    windows = [
        TokenLayer(
            grid.direction,
            tuple(want - have for want, have in zip(wanted, carrier, strict=True)),
            ThreePieces(context - half, context + half, between=(0, 1)),
        )
        for context, (carrier, wanted) in outputs.items()
    ]
    return [*windows, *clearing(grid, bound)]


def clearing(grid: Grid, bound: Number) -> list[TokenLayer]:
    """Rows that no window caught are brought to 0, so that the network stays bounded where it is not exact.

    One layer suffices for d = 1. For d > 1 such a row also holds its own entries, up to 1/delta: it is first sent to
    the level -B, where no output is; there each entry can be read as (level + entry) + B, and be taken away.
    """
    u, width = grid.direction, grid.width
    depth = 0 if width == 1 else 4 * (math.ceil(bound) + grid.num_cells)
    lower: Line = (-1, -depth)
    layers = [TokenLayer(u, _unit(width, 0), ThreePieces(-bound, bound, below=lower, above=lower))]
    for entry in range(1, width):
        read = tuple(a + b for a, b in zip(u, _unit(width, entry), strict=True))
        write = tuple(b - u[entry] * a for a, b in zip(_unit(width, 0), _unit(width, entry), strict=True))
        layers.append(TokenLayer(read, write, ThreePieces(-depth // 2, 0, below=lower)))
    if depth:
        layers.append(TokenLayer(u, _unit(width, 0), ThreePieces(-depth // 2, 0, below=(0, depth))))
    return layers


def applied(layers: Iterable[TokenLayer], row: Sequence[Number]) -> list[Number]:
    """A row after the layers, exactly."""
    result = list(row)
    for layer in layers:
        amount = layer.pieces(sum((a * b for a, b in zip(layer.read, result, strict=True)), start=0))
        if amount:
            result = [entry + amount * step for entry, step in zip(result, layer.write, strict=True)]
    return result
