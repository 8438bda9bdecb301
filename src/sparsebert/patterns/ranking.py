"""Rankings: in which order lines are worth keeping, so that one pattern file gives a pattern of any sparsity.

(layer, head, distance), the worthiest first --budget--> the first so many of them, and the border --> Pattern

A side of the border may be ranked like a line; it is written as a distance below 0. A directed ranking names single
offsets j - i instead of distances.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Int32, Int64

from sparsebert.errors import PatternError
from sparsebert.patterns.entries import SIDES
from sparsebert.settings import Share, fits

_SIDES = len(SIDES)
SIDE_CODES = -1 - np.arange(_SIDES)  # how sides are written, in order of SIDES
_BEYOND = 0.005  # of all entries: so far past the ends of a ranking its end is still the nearest pattern


@dataclass(frozen=True, eq=False)
class Ranking:
    """Lines in order of worth. A line is both offsets of a distance in one head of one layer; directed, one offset."""

    units: Int32[np.ndarray, "units 3"]  # layer, head and distance; -1 to -4: a side of the border, in order of SIDES
    border: bool = True  # lines lie inside the border, which is kept whatever the budget unless its sides are ranked
    directed: bool = False  # a distance d is the offset d alone; the offset -d is written as code_of() says

    def __post_init__(self) -> None:
        units = self.units
        lowest = (0, 0, -np.iinfo(np.int32).max if self.directed else -_SIDES)
        if units.dtype != np.int32 or units.ndim != 2 or units.shape[1] != 3 or (units < lowest).any():
            raise PatternError(
                f"a ranking of {units.dtype} {list(units.shape)} cannot be; expected int32 [units, 3]: layer, head and "
                "distance, none below 0 but for the four sides of the border, -1 to -4"
            )
        if self.has_sides and not self.border:
            raise PatternError("a ranking names sides of the border but border=False; sides go with border=True")
        if len(np.unique(units, axis=0)) != len(units):
            raise PatternError("a ranking names the same line twice; expected each (layer, head, distance) once")
        units.setflags(write=False)

    @property
    def has_sides(self) -> bool:
        """Whether the border has to earn its place as lines have."""
        return bool(_is_side(self.units[:, 2]).any())

    def check(self, layers: int, heads: int) -> None:
        """Refuse lines of layers or heads that a pattern does not have."""
        if len(self.units) and (self.units[:, :2].max(0) >= (layers, heads)).any():
            layer, head = self.units[:, :2].max(0)
            raise PatternError(
                f"the ranking reaches layer {layer} and head {head}; the pattern has {layers} layers of {heads} heads"
            )

    def sizes(self, length: int) -> Int64[np.ndarray, " units"]:
        """Entries that each line adds to a pattern of that length; none where it reaches past it."""
        codes = self.units[:, 2].astype(np.int64)
        inner = length - 2 if self.border else length
        distances = np.abs(offset_of(codes))
        lines = np.where((distances == 0) | self.directed, 1, 2) * np.maximum(inner - distances, 0)
        sides = np.where(codes >= -2, length, max(length - 2, 0))
        return np.asarray(np.where(_is_side(codes), sides, lines))

    def always(self, length: int) -> int:
        """Entries of one head that are kept whatever the budget."""
        if self.has_sides:
            return 0
        return min(4 * length - 4, length**2) if self.border and length > 1 else int(self.border)

    def arguments(self, sparsity: float, length: int, layers: int, heads: int) -> list[dict[str, Any]]:
        """What from_offsets is given for each layer: the first so many lines as come nearest to a sparsity."""
        self.check(layers, heads)
        offsets: list[list[list[int]]] = [[[] for _ in range(heads)] for _ in range(layers)]
        sides: list[list[list[str]]] = [[[] for _ in range(heads)] for _ in range(layers)]
        for layer, head, code in self.units[: self._count(sparsity, length, layers * heads)].tolist():
            if -_SIDES <= code < 0:
                sides[layer][head].append(SIDES[-1 - code])
            elif self.directed:
                offsets[layer][head].append(int(offset_of(code)))
            else:
                offsets[layer][head] += [-code, code]
        if not self.has_sides:
            return [{"offsets": one, "border": self.border} for one in offsets]
        return [{"offsets": one, "sides": side} for one, side in zip(offsets, sides, strict=True)]

    def rule(self, sparsity: float, length: int, layers: int, heads: int) -> dict[str, Any]:
        """How the pattern of that sparsity is made."""
        arguments = self.arguments(sparsity, length, layers, heads)
        rules = [{"builder": "from_offsets", "heads": heads, "arguments": one} for one in arguments]
        return {"operation": "layers", "of": rules}

    def _count(self, sparsity: float, length: int, heads: int) -> int:
        if not fits(sparsity, Share):
            raise PatternError(f"sparsity is {sparsity!r}; it must lie between 0 and 1")
        entries = heads * length**2
        totals = np.concatenate([[0], np.cumsum(self.sizes(length))]) + heads * self.always(length)
        densest, sparsest = 1.0 - totals[-1] / entries, 1.0 - totals[0] / entries
        if not densest - _BEYOND <= sparsity <= sparsest + _BEYOND:
            raise PatternError(
                f"this ranking gives no pattern of sparsity {sparsity:g} at length {length}; its own go from "
                f"{densest:.4f} to {sparsest:.4f}"
            )
        return int(np.abs(totals - (1.0 - sparsity) * entries).argmin())


def code_of(offsets: Int64[np.ndarray, " lines"]) -> Int64[np.ndarray, " lines"]:
    """How offsets are written in a directed ranking: below 0 the numbers of the sides come first."""
    return np.asarray(np.where(offsets < 0, offsets - _SIDES, offsets))


def offset_of(codes: Int64[np.ndarray, " lines"] | int) -> Int64[np.ndarray, " lines"]:
    """What code_of() wrote; for the code of a side there is none."""
    return np.asarray(np.where(np.asarray(codes) < 0, np.asarray(codes) + _SIDES, codes))


def _is_side(codes: Int64[np.ndarray, " units"] | Int32[np.ndarray, " units"]) -> Bool[np.ndarray, " units"]:
    return np.asarray((codes < 0) & (codes >= -_SIDES))
