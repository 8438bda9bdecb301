"""A table as data: cells with our value, the paper's, and the runs behind it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from sparsebert.report.judging.statistics import interval_of_mean
from sparsebert.studies.results import StudyRun


@dataclass(frozen=True)
class Cell:
    """One figure: ours, its interval over seeds, the paper's, and the runs that ours comes from."""

    value: float | str | None = None
    paper: float | str | None = None
    interval: tuple[float, float] | None = None
    runs: tuple[str, ...] = ()
    digits: int = 1

    @property
    def half_width(self) -> str | None:
        """Of the interval, in as many digits as the value; None where there is none."""
        if self.interval is None or not isinstance(self.value, float):
            return None
        return f"{(self.interval[1] - self.interval[0]) / 2:.{self.digits}f}"


@dataclass(frozen=True)
class Row:
    label: str
    cells: tuple[Cell, ...]
    group: str = ""  # rows of one group stand together under its name


@dataclass(frozen=True)
class Table:
    key: str
    title: str
    caption: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    has_paper: bool = True
    notes: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether no cell has a figure of ours."""
        return all(cell.value is None for row in self.rows for cell in row.cells)

    @property
    def groups(self) -> dict[str, list[Row]]:
        found: dict[str, list[Row]] = {}
        for row in self.rows:
            found.setdefault(row.group, []).append(row)
        return found


def said(value: float | str | None, digits: int) -> str:
    """A cell's words."""
    if value is None:
        return "–"  # noqa: RUF001 - the dash of an empty cell
    return value if isinstance(value, str) else f"{value:.{digits}f}".replace("-", "\N{MINUS SIGN}")


def signed(value: float, unit: str | None) -> str:
    """With two or three decimals, and one digit of what these would show as zero."""
    digits = 2 if unit in ("points", "points a decade") else 3
    is_tiny = value != 0 and abs(value) < 0.5 * 10**-digits
    return (f"{value:+.1g}" if is_tiny else f"{value:+.{digits}f}").replace("-", "\N{MINUS SIGN}")


def raw(value: float | str | None) -> str:
    """As a program reads it."""
    if value is None:
        return ""
    return value if isinstance(value, str) else f"{value:.6g}"


def ids(runs: Iterable[StudyRun]) -> tuple[str, ...]:
    return tuple(run.id for run in runs)


def mean_cell(
    values: Sequence[float], runs: tuple[str, ...], paper: float | str | None = None, digits: int = 1
) -> Cell:
    """The mean of one value a seed, with its interval; empty where there is no value."""
    return Cell(fmean(values), paper, interval_of_mean(values), runs, digits) if values else Cell(paper=paper)


def by_seed(found: Iterable[tuple[StudyRun, float]]) -> tuple[float, ...]:
    """The mean of each seed, from the first seed on."""
    values = list(found)
    seeds = sorted({run.seed for run, _ in values})
    return tuple(fmean(value for run, value in values if run.seed == seed) for seed in seeds)
