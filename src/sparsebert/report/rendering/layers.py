"""Which layers and heads need what: a figure and a table of the searches that gave every layer its own pattern."""

from collections.abc import Callable
from functools import lru_cache
from statistics import fmean

from sparsebert.importance.by_layer import KINDS_OF_LINES, LayerNeeds, needs_of_search
from sparsebert.report.rendering.figures.charts import point
from sparsebert.report.rendering.figures.shapes import Chart, Panel, Series
from sparsebert.report.rendering.tables import Cell, Row, Table, by_seed, ids, mean_cell
from sparsebert.studies.results import Study, StudyRun

_SPARSITY = 0.9  # that layers are looked at
Found = tuple[tuple[StudyRun, list[LayerNeeds]], ...]


@lru_cache(maxsize=8)
def searches_by_layer(study: Study) -> Found:
    """Structured searches to that sparsity, one a seed."""
    runs = study.finished("search", kind="structured", sparsity_target=_SPARSITY)
    found = ((run, needs_of_search(run.path)) for run in runs)
    return tuple((run, needs) for run, needs in found if needs is not None)


def _each(found: Found, layer: int, of: Callable[[LayerNeeds], float | None]) -> list[tuple[StudyRun, float]]:
    return [(run, value) for run, needs in found if (value := of(needs[layer])) is not None]


def _odds_of(kind: str) -> Callable[[LayerNeeds], float | None]:
    return lambda one: None if one.log_odds is None else one.log_odds[kind]


def layers_chart(study: Study) -> Chart:
    """Density, the diagonal and the gate's log-odds, layer by layer."""
    found = searches_by_layer(study)
    layers = range(len(found[0][1]) if found else 0)

    def series(name: str, of: Callable[[LayerNeeds], float | None], colour: int) -> list[Series]:
        points = tuple(one for layer in layers if (one := point(layer + 1, _each(found, layer, of))) is not None)
        return [Series(name, points, colour)] if points else []

    def panel(title: str, axis: str, *drawn: list[Series]) -> list[Panel]:
        kept = tuple(one for each in drawn for one in each)
        return [Panel(title, "layer", axis, kept)] if kept else []

    panels = [
        *panel(
            "Density",
            "% of entries",
            series("densest head", lambda one: 100 * max(one.densities), 3),
            series("mean of heads", lambda one: 100 * one.density, 1),
            series("sparsest head", lambda one: 100 * min(one.densities), 4),
        ),
        *panel("Heads that keep the diagonal", "%", series("diagonal", lambda one: 100 * one.keeps_diagonal, 0)),
        *panel(
            "Log-odds of keeping a line",
            "mean over heads",
            *(series(kind, _odds_of(kind), place) for place, kind in enumerate(KINDS_OF_LINES)),
        ),
    ]
    return Chart("layers", "Which layers need what", told(study), tuple(panels))


def told(study: Study) -> str:
    """In words: which layers keep most and least, and whether the diagonal matters least in each."""
    found = searches_by_layer(study)
    if not found:
        return "No search gave layers patterns of their own."
    count = len(found[0][1])
    means = [fmean(needs[layer].density for _, needs in found) for layer in range(count)]
    most, least = means.index(max(means)), means.index(min(means))
    words = (
        f"Patterns a layer at {100 * _SPARSITY:.0f} % sparsity, {len(found)} seed{'' if len(found) == 1 else 's'}. "
        f"Layer {most + 1} keeps most ({100 * means[most]:.1f} %), "
        f"layer {least + 1} least ({100 * means[least]:.1f} %)."
    )
    judged = [[needs[layer].diagonal_is_least for _, needs in found] for layer in range(count)]
    if any(one is None for each in judged for one in each):
        return words
    always = [str(layer + 1) for layer, each in enumerate(judged) if all(each)]
    where = "no layer" if not always else "every layer" if len(always) == count else f"layer {', '.join(always)}"
    return f"{words} In {where} the diagonal is, by the gate's log-odds, the least important line with every seed."


def layers_table(study: Study) -> Table:
    """The same as numbers."""
    found = searches_by_layer(study)
    columns: dict[str, tuple[Callable[[LayerNeeds], float | None], int]] = {
        "Density %": (lambda one: 100 * one.density, 1),
        "Sparsest head": (lambda one: 100 * min(one.densities), 1),
        "Densest head": (lambda one: 100 * max(one.densities), 1),
        "Heads with diagonal %": (lambda one: 100 * one.keeps_diagonal, 1),
        **{f"Log-odds {kind}": (_odds_of(kind), 2) for kind in KINDS_OF_LINES},
    }
    rows = []
    for layer in range(len(found[0][1]) if found else 0):
        cells: list[Cell] = []
        for of, digits in columns.values():
            values = _each(found, layer, of)
            cells.append(mean_cell(by_seed(values), ids(run for run, _ in values), digits=digits))
        rows.append(Row(f"layer {layer + 1}", tuple(cells)))
    return Table("layers", "Which layers need what", told(study), tuple(columns), tuple(rows), has_paper=False)
