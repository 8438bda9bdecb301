"""Which kinds of entries matter: importance by category, with an interval over heads, and what it says."""

from dataclasses import asdict, dataclass
from html import escape
from typing import Any

import numpy as np
from jaxtyping import Float, Int64

from sparsebert import draws

# In this spelling everywhere: in files, tables, figures and sentences.
NAMES = ("diagonal", "±1", "±2", "±3..5", "[CLS]", "[SEP]", "other")
_LEVEL = 0.95
_RESAMPLES = 10_000


@dataclass(frozen=True)
class Category:
    """One row of the table."""

    name: str
    mean: float  # over heads, of the mean importance of the category's entries
    low: float  # of the bootstrap interval over heads
    high: float
    rank: int  # 1: the most important
    entries: int  # of one head
    above: float  # how far above the diagonal, mean over heads
    above_low: float  # of the bootstrap interval of that difference, taken head by head
    above_high: float


@dataclass(frozen=True)
class CategoryTable:
    """Importance by category; entries of the first or last row or column are [CLS] or [SEP], however near."""

    rows: tuple[Category, ...]

    def __getitem__(self, name: str) -> Category:
        return next(row for row in self.rows if row.name == name)

    def as_json(self) -> list[dict[str, Any]]:
        return [asdict(row) for row in self.rows]

    def as_text(self) -> str:
        """The table as lines of equal width."""
        return "\n".join(
            f"{name:<10} {mean:>7}   {interval:<17} {rank:>4} {entries:>8}   {above}".rstrip()
            for name, mean, interval, rank, entries, above in (_HEAD, *map(_words, self.rows))
        )

    @property
    def diagonal_is_lowest(self) -> bool:
        """Every other category lies above the diagonal by more than the interval of the difference."""
        return all(row.above_low > 0 for row in self.rows if row.name != "diagonal")

    def _repr_html_(self) -> str:
        """The same for notebooks, with what it says."""
        return f"<pre>{escape(self.as_text())}</pre><p>{escape(self.verdict())}</p>"

    def verdict(self) -> str:
        """One honest sentence: is the diagonal the least important here?"""
        diagonal, lowest = self["diagonal"], max(self.rows, key=lambda row: row.rank)
        top = min(self.rows, key=lambda row: row.rank)
        others = [row for row in self.rows if row.name != "diagonal"]
        if self.diagonal_is_lowest:
            nearest = min(others, key=lambda row: row.above_low)
            touching = ", ".join(row.name for row in others if row.low <= diagonal.high)
            caution = (
                f" Taken apart rather than head by head, its interval still overlaps {touching}." if touching else ""
            )
            return (
                f"The diagonal is the least important here: head by head it lies below every other category, closest "
                f"to {nearest.name} ({_difference(nearest)}); the most important is {top.name}.{caution}"
            )
        if lowest.name == "diagonal":
            rivals = ", ".join(row.name for row in others if row.above_low <= 0)
            return (
                f"The diagonal has the lowest mean here, {diagonal.mean:.3f}, but not by more than the bootstrap "
                f"interval of the difference to {rivals}: this run does not settle it; more steps would help."
            )
        return (
            f"The diagonal is not the least important here: it ranks {diagonal.rank} of {len(self.rows)}, and "
            f"{lowest.name} is lowest with {lowest.mean:.3f}; the paper's finding does not show in this run."
        )


_HEAD = ("category", "mean", "95 % interval", "rank", "entries", "above the diagonal by")


def _words(row: Category) -> tuple[str, ...]:
    interval = f"{row.low:.4f} .. {row.high:.4f}"
    return row.name, f"{row.mean:.4f}", interval, str(row.rank), str(row.entries), _difference(row)


def _difference(row: Category) -> str:
    return "" if row.name == "diagonal" else f"{row.above:+.4f} ({row.above_low:+.4f} .. {row.above_high:+.4f})"


def categories(length: int) -> Int64[np.ndarray, "n n"]:
    """The number in NAMES of every entry."""
    places = np.arange(length)
    distance = np.abs(places[:, None] - places)
    number = np.full((length, length), NAMES.index("other"))
    for name, nearest, furthest in (("±3..5", 3, 5), ("±2", 2, 2), ("±1", 1, 1), ("diagonal", 0, 0)):
        number[(distance >= nearest) & (distance <= furthest)] = NAMES.index(name)
    number[-1, :] = number[:, -1] = NAMES.index("[SEP]")
    number[0, :] = number[:, 0] = NAMES.index("[CLS]")
    return number


def by_category(importance: Float[np.ndarray, "heads n n"]) -> dict[str, Float[np.ndarray, " heads"]]:
    """Mean importance of each category in each head; a short input has no entries of some."""
    number = categories(importance.shape[-1])
    present = [index for index in range(len(NAMES)) if (number == index).any()]
    return {NAMES[index]: importance[:, number == index].mean(1) for index in present}


def tabulate(importance: Float[np.ndarray, "heads n n"], seed: int = 0) -> CategoryTable:
    """Mean importance of each category: over its entries, then over heads, with a bootstrap interval over heads."""
    found = by_category(importance)
    means, heads = np.stack(list(found.values()), axis=1), len(importance)
    drawn = draws.generator(seed, "importance/bootstrap").integers(0, heads, (_RESAMPLES, heads))
    low, high = _interval(means, drawn)
    # Heads differ from one another more than categories do; within a head both are measured alike.
    above = means - means[:, [0]]
    above_low, above_high = _interval(above, drawn)
    ranks = np.argsort(np.argsort(-means.mean(0), kind="stable"), kind="stable") + 1
    columns = (means.mean(0), low, high, above.mean(0), above_low, above_high)
    number = categories(importance.shape[-1])
    rows = []
    for place, name in enumerate(found):
        mean, bottom, top, over, over_low, over_high = (float(column[place]) for column in columns)
        entries = int((number == NAMES.index(name)).sum())
        rows.append(Category(name, mean, bottom, top, int(ranks[place]), entries, over, over_low, over_high))
    return CategoryTable(tuple(rows))


def _interval(values: Float[np.ndarray, "heads columns"], drawn: Int64[np.ndarray, "resamples heads"]) -> np.ndarray:
    """The bootstrap interval of the mean over heads."""
    interval: np.ndarray = np.quantile(values[drawn].mean(1), [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2], axis=0)
    return interval
