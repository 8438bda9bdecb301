"""The grid of quantised inputs, and the constants that the construction takes from it."""

from collections.abc import Sequence
from dataclasses import dataclass

from sparsebert.errors import TheoryError


@dataclass(frozen=True)
class Grid:
    """All quantised inputs of `tokens` rows of `width` entries, each entry a multiple of delta = 1/resolution.

    Values are counted in units of delta. A row z is known by its level z·u with u = (1, r, ..., r^(d-1)): an
    integer from 0 to r^d - 1, one for each cell. The construction sees levels only, so that (d, r) and
    (1, r^d) are the same problem.

    `marked` adds i·r to the last entry of row i (counting from 0): position i owns the levels i·r^d .. (i+1)·r^d - 1.
    """

    tokens: int  # n
    width: int  # d
    resolution: int  # 1/delta
    marked: bool = False  # rows carry their position

    def __post_init__(self) -> None:
        if self.tokens < 3:
            raise TheoryError(f"found {self.tokens} tokens; the construction needs at least 3, so ask for 3 or more")
        if self.width < 1:
            raise TheoryError(f"found width {self.width}; a token needs at least one entry, so ask for 1 or more")
        if self.num_levels < self.tokens:
            raise TheoryError(
                f"found {self.num_levels} cells for {self.tokens} distinct tokens; "
                f"raise the resolution until resolution^width is at least {self.tokens}"
            )

    @property
    def num_cells(self) -> int:
        """Cells that one row can be in: delta^-d."""
        return int(self.resolution**self.width)

    @property
    def num_levels(self) -> int:
        """Levels that the selective shifts sweep over, N: delta^-d, or n·delta^-d where rows are marked."""
        return self.num_cells * (self.tokens if self.marked else 1)

    @property
    def local_gain(self) -> int:
        """What a selective shift multiplies max - min by; the paper's delta^-d."""
        return self.num_levels

    @property
    def global_gain(self) -> int:
        """What a global shift multiplies the maximum by; the paper's Delta_h/delta. All shifted levels lie below it."""
        levels = self.num_levels
        return int((levels - 1) * (levels**self.tokens + levels + 1))

    @property
    def num_attention_layers(self) -> int:
        """One selective shift a level, then two global shifts."""
        return self.num_levels + 2

    @property
    def direction(self) -> tuple[int, ...]:
        """The vector u that turns a row into its level."""
        return tuple(self.resolution**k for k in range(self.width))

    @property
    def outside(self) -> int:
        """The value given to entries outside [0, 1): the paper's -delta^-nd, in units of delta."""
        return -int(self.resolution ** (self.tokens * self.width + 1))

    def row(self, level: int, position: int = 0) -> list[int]:
        """The row of entries whose level this is; `position` takes a mark off, so that entries stay below r·(i+1)."""
        mark = position * self.num_cells if self.marked else 0
        digits, rest = [], level - mark
        for _ in range(self.width):
            digits.append(rest % self.resolution)
            rest //= self.resolution
        digits[-1] += mark // self.resolution ** (self.width - 1)
        return digits

    def rows(self, levels: Sequence[int]) -> list[list[int]]:
        """An input as rows of entries, from its levels in the order of the rows."""
        return [self.row(int(level), position) for position, level in enumerate(levels)]
