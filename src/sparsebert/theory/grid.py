"""The grid of quantised inputs, and the constants that the construction takes from it."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from sparsebert.errors import TheoryError

Number = int | Fraction


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
    def direction(self) -> tuple[int, ...]:
        """The vector u that turns a row into its level."""
        return tuple(self.resolution**k for k in range(self.width))

    @property
    def outside(self) -> int:
        """The value given to entries outside [0, 1): the paper's -delta^-nd, in units of delta."""
        return -int(self.resolution ** (self.tokens * self.width + 1))

    @property
    def context_bound(self) -> int:
        """No entry of q reaches this: G²·(l~_n + 1) with l~_n <= N^(n-1)·l~_1 (docs/theory.md proves it)."""
        levels, cells = self.num_levels, self.num_cells
        # The first token gains N·(last - second); marks keep the second one at least a block away from level 0.
        first = levels * (levels - 1 - cells) + cells - 1 if self.marked else levels * (levels - 2)
        return int(self.global_gain**2 * (levels ** (self.tokens - 1) * first + 1))

    def mark(self, position: int) -> int:
        """The positional encoding: what the last entry of the row at this position gains, in units of delta."""
        return position * self.resolution if self.marked else 0

    def row(self, level: int, position: int = 0) -> list[Number]:
        """The entries of the row that has this level; at a position of a marked grid the last entry holds the mark."""
        rest = level - (position * self.num_cells if self.marked else 0)
        entries: list[Number] = []
        for _ in range(self.width):
            entries.append(rest % self.resolution)
            rest //= self.resolution
        entries[-1] += self.mark(position)
        return entries

    def rows(self, levels: Sequence[int]) -> list[list[Number]]:
        """An input as rows of entries, from its levels in the order of the rows."""
        return [self.row(int(level), position) for position, level in enumerate(levels)]
