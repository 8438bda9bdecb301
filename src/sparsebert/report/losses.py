"""The primary endpoint as a table: held-out loss of everything that was pre-trained under a pattern."""

from collections.abc import Iterable, Sequence
from statistics import fmean

from sparsebert.report.matching import Condition, describe
from sparsebert.report.pairs import Sample, gains
from sparsebert.report.paper import KINDS
from sparsebert.report.statistics import interval_of_mean
from sparsebert.report.study import Run, Study, number
from sparsebert.report.tables import Cell, Row, Table

_DENSE = Condition("dense", "dense")
_DIAGONAL = "Dense and the diagonal"
_PRUNED = {"p": "Pruned by P", "random": "Pruned at random"}
_GROUPS = (_DIAGONAL, "Hand-made", *(f"Learned, {kind}" for kind in KINDS), *_PRUNED.values())
_DIGITS = 4


def losses_table(study: Study) -> Table:
    """Every condition: in the order in which the study makes them, and by the sparsity that was asked for."""
    dense = gains(_DENSE.adapted(study))
    found = _by_condition(study)
    shown = sorted(found, key=lambda one: (_GROUPS.index(_group(one)), one.sparsity_target or 0.0))
    return Table(
        "losses",
        "Held-out MLM loss of every condition",
        "In nats, on the same held-out rows: mean over seeds, and what it is more than dense attention's of the same "
        "seed, over the seeds that both have.",
        ("Sparsity %", "MLM loss", "More than dense", "Seeds"),
        tuple(_row(condition, found[condition], dense) for condition in shown),
        has_paper=False,
    )


def _by_condition(study: Study) -> dict[Condition, list[Run]]:
    found: dict[Condition, list[Run]] = {_DENSE: _DENSE.adapted(study)}
    for run in study.finished("adapt"):
        condition = _condition(run)
        if condition != _DENSE and _group(condition):
            found.setdefault(condition, []).append(run)
    return {condition: with_loss for condition, runs in found.items() if (with_loss := _with_loss(runs))}


def _with_loss(runs: Iterable[Run]) -> list[Run]:
    return [run for run in runs if run.loss is not None]


def _condition(run: Run) -> Condition:
    """What sets it apart; what is not of the kind that it should be counts as absent."""
    given = run.condition
    if given.get("family") == "dense":
        return _DENSE
    return Condition(
        str(given.get("family")),
        pattern=_word(given.get("pattern")),
        diagonal=given.get("diagonal") is not False,
        kind=_word(given.get("kind")),
        penalty=number(given.get("penalty")),
        sparsity_target=number(given.get("sparsity_target")),
        method=_word(given.get("method")),
    )


def _word(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _row(condition: Condition, runs: Sequence[Run], dense: Sample) -> Row:
    ids = tuple(run.id for run in runs)
    found = gains(runs)
    more = dense.minus(found)
    sparsities = [100 * run.sparsity for run in runs if run.sparsity is not None]
    cells = (
        Cell(fmean(sparsities), runs=ids) if sparsities else Cell(),
        _mean([-gain for gain in found.values.values()], ids),
        _mean(list(more.values.values()), more.runs) if condition != _DENSE else Cell(),
        Cell(float(len(found.values)), digits=0),
    )
    return Row(_label(condition), cells, _group(condition))


def _mean(values: Sequence[float], ids: tuple[str, ...]) -> Cell:
    return Cell(fmean(values), None, interval_of_mean(values), ids, _DIGITS) if values else Cell()


def _group(condition: Condition) -> str:
    """Empty for what belongs nowhere."""
    if condition.family in ("dense", "no-diagonal", "random-drop"):
        return _DIAGONAL
    if condition.family == "handmade":
        return "Hand-made"
    if condition.family == "learned" and condition.kind in KINDS:
        return f"Learned, {condition.kind}"
    is_pruned = condition.family == "pruned" and condition.sparsity_target is not None
    return _PRUNED.get(str(condition.method), "") if is_pruned else ""


def _label(condition: Condition) -> str:
    if condition.family == "pruned":
        return f"{100 * (condition.sparsity_target or 0.0):.3g}%"
    chosen = condition.family == "handmade" or condition.penalty is not None
    title = describe(condition)
    return f"{title}, without the diagonal" if chosen and condition.diagonal is False else title
