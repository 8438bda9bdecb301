"""Rows of tables as a study has them: which runs belong to each, what it is called, and which are compared."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import lru_cache
from statistics import fmean

import numpy as np

from sparsebert.report.judging.endpoints import Endpoint
from sparsebert.report.judging.samples import Sample, gains, scores
from sparsebert.report.paper import HANDMADE
from sparsebert.studies.results import Study, StudyRun
from sparsebert.studies.runs import DENSE, KINDS, Condition, percent

_ROUNDING = 0.005  # two sparsities that round to the same whole per cent count as equal
_STRAY = 0.02  # how far beyond the ends of a curve a value may still be compared with its end

Runs = tuple[StudyRun, ...]
SampleOf = Callable[[Study, Condition, str | None], Sample]


def scored(study: Study, row: Condition | None, used_by: str | None = None) -> Runs:
    """Runs of the row that have a task's score."""
    return () if row is None else _scored(study, used_by).get(row, ())


def adapted(study: Study, row: Condition | None, used_by: str | None = None) -> Runs:
    """Runs that were pre-trained under it, for their held-out loss."""
    return () if row is None else _adapted(study, used_by).get(row, ())


def scores_of(study: Study, row: Condition, used_by: str | None) -> Sample:
    return scores(scored(study, row, used_by))


def gains_by(endpoint: Endpoint) -> SampleOf:
    """What finds a row's gains by an endpoint."""

    def found(study: Study, row: Condition, used_by: str | None) -> Sample:
        return gains(adapted(study, row, used_by), endpoint)

    return found


@lru_cache(maxsize=16)  # every table and figure asks, and the answer is the same
def _scored(study: Study, used_by: str | None) -> dict[Condition, Runs]:
    return _by_row(study.scored(used_by))


@lru_cache(maxsize=16)
def _adapted(study: Study, used_by: str | None) -> dict[Condition, Runs]:
    # Where pre-training is whole, the base run itself is the dense one of its seed, and no other is planned.
    planned = {run.seed for run in study.runs if run.stage == "adapt" and run.condition.row == DENSE}
    base = [run for run in study.finished("base", study=used_by) if run.seed not in planned]
    return _by_row([*base, *study.finished("adapt", study=used_by)])


def _by_row(runs: Iterable[StudyRun]) -> dict[Condition, Runs]:
    found: dict[Condition, list[StudyRun]] = {}
    for run in runs:
        row = run.condition.row
        found.setdefault(DENSE if row.family == "base" else row, []).append(run)
    return {row: tuple(runs) for row, runs in found.items()}


def sparsity_of(study: Study, row: Condition, used_by: str | None = None) -> float | None:
    """Mean over its runs."""
    runs = adapted(study, row, used_by) + scored(study, row, used_by)
    found = [run.sparsity for run in runs if run.sparsity is not None]
    return fmean(found) if found else None


def name_of(row: Condition) -> str:
    """As the paper's tables name it; with its diagonal or without is not part of the name."""
    if row.taught:
        return f"{name_of(replace(row, taught=False))}, taught"
    if row.family == "handmade":
        return HANDMADE.get(str(row.pattern), str(row.pattern))
    if row.family != "learned":
        return row.family
    title = KINDS.get(str(row.kind), str(row.kind))
    if row.penalty is not None:
        return f"{title} λ={row.penalty:g}"
    return title if row.sparsity_target is None else f"{title} {percent(row.sparsity_target)}"


def is_of_paper(row: Condition) -> bool:
    """Claims are about the paper's patterns; a study may hold others beside them."""
    return row.pattern in HANDMADE if row.family == "handmade" else row.family != "learned" or row.kind in KINDS


def all_rows(study: Study, used_by: str | None = None) -> list[Condition]:
    """Of everything that has a loss or a score, in the order in which the study makes it."""
    return list(dict.fromkeys((*_adapted(study, used_by), *_scored(study, used_by))))


def untaught(study: Study, used_by: str | None) -> list[Condition]:
    """Those that claims are about: the paper knows no teacher."""
    return [row for row in all_rows(study, used_by) if not row.taught]


def taught(study: Study, used_by: str | None) -> list[Condition]:
    """Those that were fine-tuned with the dense model of the task as their teacher."""
    return [row for row in all_rows(study, used_by) if row.taught]


def handmade(study: Study, used_by: str | None = "patterns") -> list[Condition]:
    """With their diagonals; the paper's in its order, and others after them."""
    found = [row for row in untaught(study, used_by) if row.family == "handmade" and row.diagonal]
    return sorted(found, key=lambda row: _place(row.pattern, HANDMADE))


def learned_at_penalties(study: Study, used_by: str | None = "patterns") -> list[Condition]:
    """By kind and penalty; without the diagonal where that was made, as the paper's learned rows are."""
    chosen: dict[tuple[str | None, float], Condition] = {}
    for row in untaught(study, used_by):
        if row.family == "learned" and row.penalty is not None:
            key = (row.kind, row.penalty)
            chosen[key] = chosen[key] if key in chosen and row.diagonal else row
    return [chosen[key] for key in sorted(chosen, key=lambda one: (_place(one[0], KINDS), one[1]))]


def _place(name: str | None, known: Iterable[str]) -> int:
    names = list(known)
    return names.index(name) if name in names else len(names)


def learned_to_targets(study: Study, used_by: str | None = "patterns") -> list[Condition]:
    """By kind and the sparsity that was aimed at."""
    found = [row for row in untaught(study, used_by) if row.family == "learned" and row.sparsity_target is not None]
    return sorted(found, key=lambda row: (str(row.kind), row.sparsity_target or 0.0))


def learned_for_stages(study: Study) -> list[Condition]:
    """To a sparsity where one was set, else at a penalty."""
    return learned_to_targets(study, "stages") or learned_at_penalties(study, "stages")


def pruned(study: Study, used_by: str, method: str) -> list[Condition]:
    """By P or at random, from the least sparse on."""
    found = [row for row in untaught(study, used_by) if row.family == "pruned" and row.method == method]
    return sorted((row for row in found if row.sparsity_target is not None), key=lambda row: row.sparsity_target or 0.0)


def pairs_by_diagonal(study: Study) -> list[tuple[Condition, Condition]]:
    """Every pattern with its diagonal, and the same without."""
    found = set(all_rows(study))
    rows = (*handmade(study, None), *learned_at_penalties(study, "ablation"))
    pairs = [(replace(row, diagonal=True), replace(row, diagonal=False)) for row in rows]
    return [pair for pair in pairs if found.issuperset(pair)]


def at_least_as_sparse(study: Study, than: Condition, sample_of: SampleOf) -> list[Condition]:
    """Of each kind the learned pattern nearest in sparsity among those that are no denser than a hand-made one.

    sample_of: what they will be compared by; a pattern without it is passed over.
    """
    own = sparsity_of(study, than, "patterns")
    nearest: dict[str | None, tuple[float, Condition]] = {}
    for learned in (*learned_at_penalties(study), *learned_to_targets(study)):
        sparsity = sparsity_of(study, learned, "patterns")
        if own is None or sparsity is None or sparsity < own - _ROUNDING or not sample_of(study, learned, "patterns"):
            continue
        distance = abs(sparsity - own)
        if learned.kind not in nearest or distance < nearest[learned.kind][0]:
            nearest[learned.kind] = (distance, learned)
    return [row for _, row in nearest.values() if is_of_paper(row)]


def two_stage_at(study: Study, one_stage: Sample, learned: Condition, sample_of: SampleOf) -> Sample:
    """What pruning P gives at the sparsity of the learned pattern, read off the line between its measured points."""
    own = sparsity_of(study, learned, "stages")
    if own is None:
        return Sample()
    points: dict[tuple[str, int], list[tuple[float, float]]] = {}
    used: list[str] = []
    for row in pruned(study, "stages", "p"):
        sample, sparsity = sample_of(study, row, "stages"), sparsity_of(study, row, "stages")
        used += sample.runs
        for key, value in sample.values.items():
            points.setdefault(key, []).append(((row.sparsity_target or 0.0) if sparsity is None else sparsity, value))
    values = {key: _on_line(points[key], own) for key in one_stage.values if key in points}
    return Sample({key: value for key, value in values.items() if value is not None}, tuple(dict.fromkeys(used)))


def _on_line(points: list[tuple[float, float]], place: float) -> float | None:
    places, values = zip(*sorted(points), strict=True)
    is_near = places[0] - _STRAY <= place <= places[-1] + _STRAY
    return float(np.interp(place, places, values)) if is_near else None
