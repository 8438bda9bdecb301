"""The primary endpoint as a table: held-out loss of everything that was pre-trained under a pattern."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from sparsebert.report.matching import Condition, describe
from sparsebert.report.pairs import Sample, gains
from sparsebert.report.paper import KINDS
from sparsebert.report.statistics import interval_of_mean
from sparsebert.report.study import Run, Study
from sparsebert.report.tables import Cell, Row, Table

_SETS_APART = ("family", "pattern", "diagonal", "kind", "penalty", "sparsity_target", "method")
_DIAGONAL = "Dense and the diagonal"
_PRUNED = {"p": "Pruned by P", "random": "Pruned at random"}
_GROUPS = (_DIAGONAL, "Hand-made", *(f"Learned, {kind}" for kind in KINDS), *_PRUNED.values())
_DIGITS = 4


def losses_table(study: Study) -> Table:
    """Every condition, in the order in which the study makes them."""
    dense = gains(Condition("dense").adapted(study))
    rows = [_row(runs, dense) for runs in _by_condition(study)]
    return Table(
        "losses",
        "Held-out MLM loss of every condition",
        "In nats, after the same steps of adaptation, on the same held-out rows: mean over seeds, and what it is more "
        "than dense attention's of the same seed.",
        ("Sparsity %", "MLM loss", "More than dense", "Seeds"),
        tuple(sorted(rows, key=lambda row: _GROUPS.index(row.group))),
        has_paper=False,
    )


def _by_condition(study: Study) -> list[list[Run]]:
    found: dict[tuple[Any, ...], list[Run]] = {}
    for run in study.finished("adapt"):
        if run.loss is not None and _group(run.condition) in _GROUPS:
            found.setdefault(tuple(run.condition.get(name) for name in _SETS_APART), []).append(run)
    return list(found.values())


def _row(runs: Sequence[Run], dense: Sample) -> Row:
    ids = tuple(run.id for run in runs)
    losses = {key: -gain for key, gain in gains(runs).values.items()}
    more = [loss + dense.values[key] for key, loss in losses.items() if key in dense.values]
    sparsities = [100 * run.sparsity for run in runs if run.sparsity is not None]
    cells = (
        Cell(fmean(sparsities), runs=ids) if sparsities else Cell(),
        _mean(list(losses.values()), ids),
        _mean(more, ids) if runs[0].condition["family"] != "dense" else Cell(),
        Cell(float(len(losses)), digits=0),
    )
    return Row(_label(runs[0].condition), cells, _group(runs[0].condition))


def _mean(values: Sequence[float], ids: tuple[str, ...]) -> Cell:
    return Cell(fmean(values), None, interval_of_mean(values), ids, _DIGITS) if values else Cell()


def _group(condition: Mapping[str, Any]) -> str:
    family = str(condition.get("family"))
    if family == "handmade":
        return "Hand-made"
    if family == "learned":
        return f"Learned, {condition.get('kind')}"
    if family == "pruned":
        return _PRUNED.get(str(condition.get("method")), "")
    return _DIAGONAL


def _label(condition: Mapping[str, Any]) -> str:
    family = str(condition["family"])
    if family == "pruned":
        return f"{100 * float(condition['sparsity_target']):.3g}%"
    title = describe(
        Condition(
            family,
            pattern=condition.get("pattern"),
            kind=condition.get("kind"),
            penalty=condition.get("penalty"),
            sparsity_target=condition.get("sparsity_target"),
        )
    )
    chosen = family == "handmade" or condition.get("penalty") is not None
    return f"{title}, without the diagonal" if chosen and condition.get("diagonal") is False else title
