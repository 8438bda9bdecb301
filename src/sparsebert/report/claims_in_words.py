"""What the paper says in words only, as comparisons of runs."""

from itertools import combinations
from statistics import fmean

import numpy as np

from sparsebert.patterns import Pattern
from sparsebert.report.importance import by_head, importances
from sparsebert.report.margins import HEADS, IMPORTANCE, RELATIVE, SCORE, SPARSITY
from sparsebert.report.matching import Condition, conditions
from sparsebert.report.pairs import Part, Sample, mean_of, scores, superior
from sparsebert.report.paper import HANDMADE, KINDS, NEIGHBOURS_AND_GLOBALS, NEIGHBOURS_ONLY
from sparsebert.report.study import Run, Study

ON_SPARSITY = (("points a decade", SPARSITY),)
ON_HEADS = (("share", HEADS),)
ON_MAPS = (("P", IMPORTANCE), ("of the mean", RELATIVE))
_NEAR = 5  # distances up to here have categories of their own
_BANDS = 4  # groups of farther distances


def others_are_alike(study: Study) -> list[Part]:
    """How far the diagonal lies from the rest, less how far any band of the rest does."""
    values, used = {}, []
    for run, found in importances(study, "soft"):
        if len(found.profile) <= _NEAR + 2 * _BANDS:
            continue
        far = np.array(found.profile[_NEAR + 1 :])
        rest = float(far.mean())
        strays = [abs(float(band.mean()) - rest) for band in np.array_split(far, _BANDS)]
        values["all heads", run.seed] = abs(found.profile[0] - rest) - max(strays)
        used.append(run.id)
    sample = Sample(values, tuple(used))
    return [superior("|diagonal - other| - |band - other|", "P", sample, IMPORTANCE)] if sample else []


def maps_mislead(study: Study) -> list[Part]:
    """Both methods: the diagonal against other positions; maps as shares of the mean, for theirs is 1/n."""
    maps = by_head(study, "attention", "diagonal", "other", _relative)
    learned = by_head(study, "soft", "other", "diagonal", lambda other, diagonal: other - diagonal)
    if not maps or not learned:
        return []
    return [
        superior("trained maps: diagonal - other", "of the mean", maps, RELATIVE),
        superior("P: other - diagonal", "P", learned, IMPORTANCE),
    ]


def _relative(value: float, to: float) -> float | None:
    return value / to - 1 if to > 0 else None


def penalty_controls_sparsity(study: Study) -> list[Part]:
    """Points of sparsity gained with each tenfold penalty: a line through each kind and seed."""
    parts = []
    for kind, title in KINDS.items():
        points: dict[int, list[tuple[float, float]]] = {}
        used = []
        for run in study.finished("search", family="learned", kind=kind):
            penalty = run.condition.get("penalty")
            if isinstance(penalty, int | float) and penalty > 0 and run.sparsity is not None:
                points.setdefault(run.seed, []).append((float(np.log10(penalty)), 100 * run.sparsity))
                used.append(run.id)
        slopes = {
            (title, seed): float(np.polyfit([place for place, _ in line], [value for _, value in line], 1)[0])
            for seed, line in points.items()
            if len({place for place, _ in line}) > 1
        }
        if slopes:
            parts.append(superior(title, "points a decade", Sample(slopes, tuple(used)), SPARSITY))
    return parts


def heads_differ(study: Study) -> list[Part]:
    """Entries kept by one of two heads only, as a share of those kept by either, off the border."""
    parts = []
    for kind, title in KINDS.items():
        runs = [run for run in study.finished("search", family="learned", kind=kind) if _pattern_file(run)]
        found = [(run, _difference(Pattern.load(run.path / "pattern.safetensors"))) for run in runs]
        by_condition: dict[tuple[str, int], list[float]] = {}
        for run, difference in found:
            if difference is not None:
                aim = f"λ={run.condition.get('penalty')}, target {run.condition.get('sparsity_target')}"
                by_condition.setdefault((aim, run.seed), []).append(difference)
        values = {key: fmean(differences) for key, differences in by_condition.items()}
        if values:
            sample = Sample(values, tuple(run.id for run, _ in found))
            parts.append(superior(title, "share", sample, HEADS, bound=HEADS))
    return parts


def _pattern_file(run: Run) -> bool:
    return (run.path / "pattern.safetensors").is_file()


def _difference(pattern: Pattern) -> float | None:
    inner = [_off_border(pattern, head) for head in range(pattern.heads)]
    pairs = [(a, b) for a, b in combinations(inner, 2) if a or b]
    return fmean(len(a ^ b) / len(a | b) for a, b in pairs) if pairs else None


def _off_border(pattern: Pattern, head: int) -> set[int]:
    entries, last = pattern.entries(head), pattern.length - 1
    rows, columns = entries // pattern.length, entries % pattern.length
    inside = (rows > 0) & (rows < last) & (columns > 0) & (columns < last)
    return set(entries[inside].tolist())


def tasks_differ(study: Study) -> list[Part]:
    """What RTE loses between the ends of the pruning curve, less what CoLA loses."""
    runs = study.scored("pruning", family="pruned", method="p")
    targets = sorted({float(run.condition.get("sparsity_target") or 0) for run in runs})
    if len(targets) < 2:
        return []
    least, most = (
        scores(Condition("pruned", method="p", sparsity_target=target).scored(study, "pruning"))
        for target in (targets[0], targets[-1])
    )
    lost = least.minus(most)
    values = {
        ("RTE - CoLA", seed): lost.values["rte", seed] - lost.values["cola", seed]
        for task, seed in lost.values
        if task == "rte" and ("cola", seed) in lost.values
    }
    return [superior("loss of RTE - loss of CoLA", "points", Sample(values, lost.runs), SCORE)] if values else []


def classes_rank(study: Study) -> list[Part]:
    """The three classes of patterns, each the mean of its members."""

    def handmade(names: tuple[str, ...]) -> Sample:
        return mean_of(
            scores(Condition("handmade", pattern=name, diagonal=True).scored(study, "patterns"))
            for name in HANDMADE
            if name in names
        )

    learned = mean_of(scores(condition.scored(study, "patterns")) for condition in conditions.learned(study))
    near, both = handmade(NEIGHBOURS_ONLY), handmade(NEIGHBOURS_AND_GLOBALS)
    parts = [
        superior("with globals - neighbours only", "points", both.minus(near), SCORE),
        superior("learned - with globals", "points", learned.minus(both), SCORE),
    ]
    return parts if all(part.values for part in parts) else []
