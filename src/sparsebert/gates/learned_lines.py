"""Lines parallel to the diagonal as units of a gate: which unit an offset j - i belongs to."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int64


@dataclass(frozen=True)
class LearnedLines:
    """Offsets of so many distances, 0 included. Both offsets of a distance are one unit, or two where directed.

    Units are the distances in order; directed, these are the offsets that look ahead, and behind them come those
    that look back.
    """

    distances: int
    directed: bool = False

    @property
    def count(self) -> int:
        return max(2 * self.distances - 1, 0) if self.directed else self.distances

    @property
    def offsets(self) -> Int64[np.ndarray, " offsets"]:
        """All of them, in order."""
        return np.arange(1 - self.distances, self.distances)

    @property
    def units(self) -> Int64[np.ndarray, " offsets"]:
        """The unit of each of `offsets`."""
        return self.unit_of(self.offsets)

    @property
    def first_offsets(self) -> Int64[np.ndarray, " units"]:
        """Of each unit the offset that looks ahead, or its only one."""
        ahead = np.arange(self.distances)
        return np.concatenate([ahead, -ahead[1:]]) if self.directed else ahead

    def unit_of(self, offsets: Int64[np.ndarray, "*shape"]) -> Int64[np.ndarray, "*shape"]:
        if not self.directed:
            return np.asarray(np.abs(offsets))
        return np.asarray(np.where(offsets < 0, self.distances - 1 - offsets, offsets))

    def sizes(self) -> Int64[np.ndarray, " units"]:
        """Entries of each unit, inside what the distances span."""
        found = np.zeros(self.count, dtype=np.int64)
        np.add.at(found, self.units, self.distances - np.abs(self.offsets))
        return found

    def kept(self, keep: Bool[np.ndarray, " units"]) -> Int64[np.ndarray, " kept"]:
        """The offsets of the units that are kept, in order."""
        return np.asarray(self.offsets[keep[self.units]])
