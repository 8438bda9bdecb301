"""The primary endpoint as a table: held-out loss of everything that was pre-trained under a pattern."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from sparsebert.report.judging.endpoints import DISTANCE, STS, deciding
from sparsebert.report.judging.rows import adapted, all_rows, name_of
from sparsebert.report.judging.samples import Sample, gains
from sparsebert.report.rendering.tables import Cell, Row, Table, ids, mean_cell
from sparsebert.studies.results import Study, StudyRun
from sparsebert.studies.runs import DENSE, KINDS, Condition, percent

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
    dense_sts: Sample = field(default_factory=Sample)  # under distill


def losses_table(study: Study) -> Table:
    """Every condition: in the order in which the study makes them, and by the sparsity that was asked for."""
    endpoint, words = deciding(study), _WORDS[study.protocol]
    dense, dense_sts = (gains(adapted(study, DENSE), one) for one in (endpoint, STS))
    found = {row: [run for run in adapted(study, row) if endpoint.of(run) is not None] for row in all_rows(study)}
    groups = list(dict.fromkeys((*_GROUPS, *map(_group, found))))
    shown = sorted(found, key=lambda row: (groups.index(_group(row)), row.sparsity_target or 0.0))
    return Table(
        "losses",
        words.title,
        words.caption,
        tuple(words.columns),
        tuple(
            Row(
                _label(row),
                tuple(make(Shown(row, found[row], dense, dense_sts)) for make in words.columns.values()),
                _group(row),
            )
            for row in shown
            if found[row]
        ),
        has_paper=False,
    )


def _sparsity(shown: Shown) -> Cell:
    sparsities = [100 * run.sparsity for run in shown.runs if run.sparsity is not None]
    return Cell(fmean(sparsities), runs=ids(shown.runs)) if sparsities else Cell()


def _loss(shown: Shown) -> Cell:
    return mean_cell([-gain for gain in gains(shown.runs).values.values()], ids(shown.runs), digits=_DIGITS)


def _more_than_dense(shown: Shown) -> Cell:
    more = shown.dense.minus(gains(shown.runs))
    return mean_cell(list(more.values.values()), more.runs, digits=_DIGITS) if shown.condition != DENSE else Cell()


def _seeds(shown: Shown) -> Cell:
    return Cell(float(len(gains(shown.runs).values)), digits=0)


COLUMNS: dict[str, Callable[[Shown], Cell]] = {
    "Sparsity %": _sparsity,
    "MLM loss": _loss,
    "More than dense": _more_than_dense,
    "Seeds": _seeds,
}


def _distance(shown: Shown) -> Cell:
    return mean_cell([-gain for gain in gains(shown.runs, DISTANCE).values.values()], ids(shown.runs), digits=_DIGITS)


def _sts(shown: Shown) -> Cell:
    return mean_cell(list(gains(shown.runs, STS).values.values()), ids(shown.runs), digits=STS.digits)


def _sts_against_dense(shown: Shown) -> Cell:
    more = gains(shown.runs, STS).minus(shown.dense_sts)
    return mean_cell(list(more.values.values()), more.runs, digits=STS.digits) if shown.condition != DENSE else Cell()


def _seeds_by_distance(shown: Shown) -> Cell:
    return Cell(float(len(gains(shown.runs, DISTANCE).values)), digits=0)


DISTILLED_COLUMNS: dict[str, Callable[[Shown], Cell]] = {
    "Sparsity %": _sparsity,
    "Distance": _distance,
    "STS": _sts,
    "STS against dense": _sts_against_dense,
    "Seeds": _seeds_by_distance,
}


@dataclass(frozen=True)
class _Words:
    """What the table is called and holds under a protocol."""

    title: str
    caption: str
    columns: Mapping[str, Callable[[Shown], Cell]]


_WORDS = {
    "mlm": _Words(
        "Held-out MLM loss of every condition",
        "In nats, on the same held-out rows: mean over seeds, and what it is more than dense attention's of the same "
        "seed, over the seeds that both have.",
        COLUMNS,
    ),
    "distill": _Words(
        "Distance and STS of every condition",
        "After the same steps of distillation: mean of 1 - cosine to the dense model's embeddings of the same held-out "
        "rows, and Spearman's correlation with people, in points, as the mean of the STS sets.",
        DISTILLED_COLUMNS,
    ),
}


def _group(row: Condition) -> str:
    groups = dict.fromkeys(("published", "dense", "no-diagonal", "random-drop"), _DIAGONAL)
    groups |= {"handmade": "Hand-made", "learned": f"Learned, {row.kind}"}
    return _PRUNED.get(str(row.method), "Other") if row.family == "pruned" else groups.get(row.family, "Other")


def _label(row: Condition) -> str:
    if row.family == "pruned" and row.sparsity_target is not None:
        return percent(row.sparsity_target)
    chosen = row.family == "handmade" or row.penalty is not None
    return f"{name_of(row)}, without the diagonal" if chosen and not row.diagonal else name_of(row)
