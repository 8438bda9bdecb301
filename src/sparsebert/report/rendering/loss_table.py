"""The primary endpoint as a table: held-out loss of everything that was pre-trained under a pattern."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

from sparsebert.report.judging.rows import adapted, all_rows, name_of
from sparsebert.report.judging.samples import Sample, gains
from sparsebert.report.judging.statistics import interval_of_mean
from sparsebert.report.rendering.tables import Cell, Row, Table
from sparsebert.studies.results import Study, StudyRun
from sparsebert.studies.runs import DENSE, KINDS, Condition

_DIAGONAL = "Dense and the diagonal"
_PRUNED = {"p": "Pruned by P", "random": "Pruned at random"}
_GROUPS = (_DIAGONAL, "Hand-made", *(f"Learned, {kind}" for kind in KINDS), *_PRUNED.values())
_DIGITS = 4


@dataclass(frozen=True)
class Shown:
    """What a row of the table is made of: a condition, its runs, and dense attention's gains to hold them against."""

    condition: Condition
    runs: Sequence[StudyRun]
    dense: Sample

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(run.id for run in self.runs)


def losses_table(study: Study) -> Table:
    """Every condition: in the order in which the study makes them, and by the sparsity that was asked for."""
    dense = gains(adapted(study, DENSE))
    found = {row: [run for run in adapted(study, row) if run.loss is not None] for row in all_rows(study)}
    groups = list(dict.fromkeys((*_GROUPS, *map(_group, found))))
    shown = sorted(found, key=lambda row: (groups.index(_group(row)), row.sparsity_target or 0.0))
    return Table(
        "losses",
        "Held-out MLM loss of every condition",
        "In nats, on the same held-out rows: mean over seeds, and what it is more than dense attention's of the same "
        "seed, over the seeds that both have.",
        tuple(COLUMNS),
        tuple(_row(Shown(row, found[row], dense)) for row in shown if found[row]),
        has_paper=False,
    )


def _row(shown: Shown) -> Row:
    return Row(_label(shown.condition), tuple(make(shown) for make in COLUMNS.values()), _group(shown.condition))


def _sparsity(shown: Shown) -> Cell:
    sparsities = [100 * run.sparsity for run in shown.runs if run.sparsity is not None]
    return Cell(fmean(sparsities), runs=shown.ids) if sparsities else Cell()


def _loss(shown: Shown) -> Cell:
    return _mean([-gain for gain in gains(shown.runs).values.values()], shown.ids)


def _more_than_dense(shown: Shown) -> Cell:
    more = shown.dense.minus(gains(shown.runs))
    return _mean(list(more.values.values()), more.runs) if shown.condition != DENSE else Cell()


def _seeds(shown: Shown) -> Cell:
    return Cell(float(len(gains(shown.runs).values)), digits=0)


COLUMNS: dict[str, Callable[[Shown], Cell]] = {
    "Sparsity %": _sparsity,
    "MLM loss": _loss,
    "More than dense": _more_than_dense,
    "Seeds": _seeds,
}


def _mean(values: Sequence[float], ids: tuple[str, ...]) -> Cell:
    return Cell(fmean(values), None, interval_of_mean(values), ids, _DIGITS) if values else Cell()


def _group(row: Condition) -> str:
    if row.family in ("dense", "no-diagonal", "random-drop"):
        return _DIAGONAL
    if row.family == "handmade":
        return "Hand-made"
    if row.family == "learned":
        return f"Learned, {row.kind}"
    return _PRUNED.get(str(row.method), "Other") if row.family == "pruned" else "Other"


def _label(row: Condition) -> str:
    if row.family == "pruned" and row.sparsity_target is not None:
        return f"{100 * row.sparsity_target:.3g}%"
    chosen = row.family == "handmade" or row.penalty is not None
    return f"{name_of(row)}, without the diagonal" if chosen and not row.diagonal else name_of(row)
