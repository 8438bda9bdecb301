"""Which runs belong to a condition of the paper, and which conditions are compared with which."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from statistics import fmean

import numpy as np

from sparsebert.report.pairs import Sample
from sparsebert.report.paper import HANDMADE, HANDMADE_TITLES, KINDS
from sparsebert.report.study import Run, Study

_ROUNDING = 0.005  # two sparsities that round to the same whole per cent count as equal
_STRAY = 0.02  # how far beyond the ends of a curve a value may still be compared with its end


@dataclass(frozen=True)
class Condition:
    """What sets a row of a table apart; None in a field means any."""

    family: str
    pattern: str | None = None
    diagonal: bool | None = None
    kind: str | None = None
    penalty: float | None = None
    sparsity_target: float | None = None
    method: str | None = None

    def covers(self, run: Run) -> bool:
        if self.family == "dense":
            # Where pre-training is whole, the base run itself is the dense condition.
            return run.condition.get("family") in ("dense", "base") and run.condition.get("pattern") in ("dense", None)
        return all(run.condition.get(name) == value for name, value in vars(self).items() if value is not None)

    def scored(self, study: Study, used_by: str | None = None) -> list[Run]:
        return list(_scored(self, study, used_by))

    def adapted(self, study: Study, used_by: str | None = None) -> list[Run]:
        """Runs that were pre-trained under it, for their held-out loss."""
        return list(_adapted(self, study, used_by))

    def sparsity(self, study: Study, used_by: str | None = None) -> float | None:
        """Mean over its runs."""
        runs = self.adapted(study, used_by) + self.scored(study, used_by)
        found = [run.sparsity for run in runs if run.sparsity is not None]
        return fmean(found) if found else None


@lru_cache(maxsize=1024)
def _scored(condition: Condition, study: Study, used_by: str | None) -> tuple[Run, ...]:
    return tuple(run for run in study.scored(used_by) if condition.covers(run))


@lru_cache(maxsize=1024)
def _adapted(condition: Condition, study: Study, used_by: str | None) -> tuple[Run, ...]:
    found = tuple(run for run in study.finished("adapt", study=used_by) if condition.covers(run))
    if condition.family == "dense" and not found:
        return tuple(run for run in study.finished("base", study=used_by) if condition.covers(run))
    return found


class conditions:  # noqa: N801 - a name space, read as a word
    """Conditions that a study holds, in the paper's order."""

    @staticmethod
    def learned(study: Study, used_by: str | None = "patterns") -> list[Condition]:
        """By kind and penalty; without the diagonal where that was made."""
        found = {
            (str(run.condition.get("kind")), float(run.condition["penalty"]))
            for run in study.finished("adapt", "finetune", "score", study=used_by, family="learned")
            if run.condition.get("kind") in KINDS and isinstance(run.condition.get("penalty"), int | float)
        }
        kinds = list(KINDS)
        return [
            Condition("learned", kind=kind, penalty=penalty, diagonal=_diagonal_of(study, kind, penalty, used_by))
            for kind, penalty in sorted(found, key=lambda one: (kinds.index(one[0]), one[1]))
        ]

    @staticmethod
    def learned_to_targets(study: Study, used_by: str) -> list[Condition]:
        """By kind and sparsity that was aimed at."""
        found = {
            (str(run.condition.get("kind")), float(run.condition["sparsity_target"]))
            for run in study.finished("adapt", "finetune", "score", study=used_by, family="learned")
            if run.condition.get("kind") in KINDS and isinstance(run.condition.get("sparsity_target"), int | float)
        }
        return [Condition("learned", kind=kind, sparsity_target=target) for kind, target in sorted(found)]

    @staticmethod
    def learned_for_stages(study: Study) -> list[Condition]:
        """By kind and target where a target was set, else by kind and penalty."""
        return conditions.learned_to_targets(study, "stages") or conditions.learned(study, "stages")

    @staticmethod
    def pairs_by_diagonal(study: Study) -> list[tuple[Condition, Condition]]:
        """Every pattern with its diagonal, and the same without."""
        pairs = [
            (Condition("handmade", pattern=name, diagonal=True), Condition("handmade", pattern=name, diagonal=False))
            for name in HANDMADE
        ]
        for learned in conditions.learned(study, "ablation"):
            with_, without = (
                Condition("learned", kind=learned.kind, penalty=learned.penalty, diagonal=keep)
                for keep in (True, False)
            )
            pairs.append((with_, without))
        return [pair for pair in pairs if all(one.adapted(study) or one.scored(study) for one in pair)]


def _diagonal_of(study: Study, kind: str, penalty: float, used_by: str | None) -> bool | None:
    """False where that was made: the paper's learned rows are patterns without the diagonal."""
    runs = study.finished("adapt", "finetune", "score", study=used_by, family="learned", kind=kind, penalty=penalty)
    return False if any(run.condition.get("diagonal") is False for run in runs) else None


def describe(condition: Condition) -> str:
    """As the paper's tables name it."""
    if condition.family == "handmade":
        return HANDMADE_TITLES.get(str(condition.pattern), str(condition.pattern))
    if condition.family != "learned":
        return condition.family
    title = KINDS.get(str(condition.kind), str(condition.kind))
    if condition.penalty is not None:
        return f"{title} λ={condition.penalty:g}"
    return title if condition.sparsity_target is None else f"{title} {100 * condition.sparsity_target:.3g}%"


def pruned_at(study: Study, used_by: str) -> list[float]:
    """Sparsities at which patterns were pruned by P and at random."""
    by_method: dict[str, set[float]] = {"p": set(), "random": set()}
    for run in study.finished("adapt", "finetune", "score", study=used_by, family="pruned"):
        target = run.condition.get("sparsity_target")
        if run.condition.get("method") in by_method and isinstance(target, int | float):
            by_method[str(run.condition["method"])].add(float(target))
    return sorted(by_method["p"] & by_method["random"])


def at_least_as_sparse(
    study: Study, handmade: Condition, runs_of: Callable[[Condition, Study, str], list[Run]]
) -> list[Condition]:
    """Of each kind the learned pattern nearest in sparsity among those that are no denser than the hand-made one.

    runs_of: Condition.scored or Condition.adapted; only what has such runs can be compared by them.
    """
    own = handmade.sparsity(study, "patterns")
    if own is None:
        return []
    nearest: dict[str, tuple[float, Condition]] = {}
    for learned in (*conditions.learned(study), *conditions.learned_to_targets(study, "patterns")):
        sparsity = learned.sparsity(study, "patterns")
        if sparsity is None or sparsity < own - _ROUNDING or not runs_of(learned, study, "patterns"):
            continue
        kind, distance = str(learned.kind), abs(sparsity - own)
        if kind not in nearest or distance < nearest[kind][0]:
            nearest[kind] = (distance, learned)
    return [condition for _, condition in nearest.values()]


def two_stage_at(
    study: Study, one_stage: Sample, learned: Condition, measure: Callable[[Iterable[Run]], Sample]
) -> Sample:
    """What pruning P gives at the sparsity of the learned pattern, read off the line between its measured points."""
    own = learned.sparsity(study, "stages")
    if own is None:
        return Sample()
    points: dict[tuple[str, int], list[tuple[float, float]]] = {}
    used: list[str] = []
    for target in sorted({float(run.condition["sparsity_target"]) for run in _pruned_by_p(study)}):
        condition = Condition("pruned", method="p", sparsity_target=target)
        runs = condition.scored(study, "stages") + condition.adapted(study, "stages")
        sample, sparsity = measure(runs), condition.sparsity(study, "stages")
        used += sample.runs
        for key, value in sample.values.items():
            points.setdefault(key, []).append((target if sparsity is None else sparsity, value))
    values = {key: _on_line(points[key], own) for key in one_stage.values if key in points}
    return Sample({key: value for key, value in values.items() if value is not None}, tuple(dict.fromkeys(used)))


def _pruned_by_p(study: Study) -> list[Run]:
    runs = study.finished("adapt", "finetune", "score", study="stages", family="pruned", method="p")
    return [run for run in runs if isinstance(run.condition.get("sparsity_target"), int | float)]


def _on_line(points: list[tuple[float, float]], place: float) -> float | None:
    ordered = sorted(points)
    places, values = zip(*ordered, strict=True)
    if not places[0] - _STRAY <= place <= places[-1] + _STRAY:
        return None
    return float(np.interp(place, places, values))
