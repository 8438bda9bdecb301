"""What the paper says in words only, as comparisons of runs."""

from itertools import combinations
from statistics import fmean

import numpy as np

from sparsebert.patterns import Pattern
from sparsebert.patterns.entries import Entries
from sparsebert.report.judging import rows
from sparsebert.report.judging.claim import Comparison, claim
from sparsebert.report.judging.importance import by_head, importances
from sparsebert.report.judging.margins import OF_UNIT
from sparsebert.report.judging.samples import Sample, mean_of
from sparsebert.report.paper import NEIGHBOURS_AND_GLOBALS, NEIGHBOURS_ONLY
from sparsebert.studies.results import Study
from sparsebert.studies.runs import KINDS

_NEAR = 5  # distances up to here have categories of their own
_BANDS = 4  # groups of farther distances


@claim(
    10,
    "others are alike",
    "importance",
    "Other positions are of similar importance: distances beyond 5 differ by less than the diagonal does.",
)
def others_are_alike(study: Study) -> list[Comparison]:
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
    return [Comparison("|diagonal - other| - |band - other|", "P", Sample(values, tuple(used)))]


@claim(11, "penalty", "patterns", "The penalty controls the sparsity: a larger one gives a sparser pattern.")
def penalty_controls_sparsity(study: Study) -> list[Comparison]:
    """Points of sparsity gained with each tenfold penalty: a line through each kind and seed."""
    found = []
    for kind, title in KINDS.items():
        points: dict[int, list[tuple[float, float]]] = {}
        used = []
        for run in study.finished("search", family="learned", kind=kind):
            penalty = run.condition.penalty or 0.0
            if penalty > 0 and run.sparsity is not None:
                points.setdefault(run.seed, []).append((float(np.log10(penalty)), 100 * run.sparsity))
                used.append(run.id)
        slopes = {
            (title, seed): float(np.polyfit([place for place, _ in line], [value for _, value in line], 1)[0])
            for seed, line in points.items()
            if len({place for place, _ in line}) > 1
        }
        found.append(Comparison(title, "points a decade", Sample(slopes, tuple(used))))
    return found


@claim(
    12,
    "heads differ",
    "patterns",
    "Heads learn different patterns: more than a tenth of what two heads keep differs.",
)
def heads_differ(study: Study) -> list[Comparison]:
    """Entries kept by one of two heads only, as a share of those kept by either, off the border."""
    found = []
    for kind, title in KINDS.items():
        by_aim: dict[tuple[str, int], list[float]] = {}
        used = []
        for run in study.finished("search", family="learned", kind=kind):
            path = run.file("pattern.safetensors")
            if path is not None:
                used.append(run.id)
                difference = _difference(Pattern.load(path))
                if difference is not None:
                    aim = f"λ={run.condition.penalty}, target {run.condition.sparsity_target}"
                    by_aim.setdefault((aim, run.seed), []).append(difference)
        values = {key: fmean(differences) for key, differences in by_aim.items()}
        # Two heads that were learned apart are never equal to the last entry.
        found.append(Comparison(title, "share", Sample(values, tuple(used)), least=OF_UNIT["share"]))
    return found


def _difference(pattern: Pattern) -> float | None:
    inner = [_off_border(pattern.length, entries) for _, _, entries in pattern.each_head()]
    layers = [inner[start : start + pattern.heads] for start in range(0, len(inner), pattern.heads)]
    pairs = [(a, b) for heads in layers for a, b in combinations(heads, 2) if a or b]
    return fmean(len(a ^ b) / len(a | b) for a, b in pairs) if pairs else None


def _off_border(length: int, entries: Entries) -> set[int]:
    last, places, keys = length - 1, entries // length, entries % length
    inside = (places > 0) & (places < last) & (keys > 0) & (keys < last)
    return set(entries[inside].tolist())


@claim(
    13,
    "redundancy",
    "pruning",
    "Tasks differ in redundancy: from the least to the most pruning RTE loses more than CoLA.",
)
def tasks_differ(study: Study) -> list[Comparison]:
    """What RTE loses between the ends of the pruning curve, less what CoLA loses."""
    by_sparsity = [one for row in rows.pruned(study, "pruning", "p") if (one := rows.scores_of(study, row, "pruning"))]
    lost = by_sparsity[0].minus(by_sparsity[-1]) if len(by_sparsity) > 1 else Sample()
    values = {
        ("RTE - CoLA", seed): lost.values["rte", seed] - lost.values["cola", seed]
        for task, seed in lost.values
        if task == "rte" and ("cola", seed) in lost.values
    }
    return [Comparison("loss of RTE - loss of CoLA", "points", Sample(values, lost.runs))]


@claim(
    14,
    "classes",
    "patterns",
    "Patterns with neighbours alone rank below those with globals too, and those below learned ones.",
)
def classes_rank(study: Study) -> list[Comparison]:
    """The three classes of patterns, each the mean of its members."""
    by_pattern = {row.pattern: rows.scores_of(study, row, "patterns") for row in rows.handmade(study)}
    near, both = (
        mean_of(sample for name, sample in by_pattern.items() if name in names)
        for names in (NEIGHBOURS_ONLY, NEIGHBOURS_AND_GLOBALS)
    )
    of_paper = filter(rows.is_of_paper, rows.learned_at_penalties(study))
    learned = mean_of(rows.scores_of(study, row, "patterns") for row in of_paper)
    found = [
        Comparison("with globals - neighbours only", "points", both.minus(near)),
        Comparison("learned - with globals", "points", learned.minus(both)),
    ]
    return found if all(one.sample for one in found) else []


@claim(
    15,
    "maps mislead",
    "importance",
    "Trained attention maps show the diagonal above other positions; P shows it below.",
)
def maps_mislead(study: Study) -> list[Comparison]:
    """Both methods: the diagonal against other positions; maps as shares of the mean, for theirs is 1/n."""
    maps = by_head(study, "attention", "diagonal", "other", lambda value, to: value / to - 1 if to > 0 else None)
    learned = by_head(study, "soft", "other", "diagonal", lambda other, diagonal: other - diagonal)
    found = [
        Comparison("trained maps: diagonal - other", "of the mean", maps),
        Comparison("P: other - diagonal", "P", learned),
    ]
    return found if maps and learned else []


IN_WORDS = (others_are_alike, penalty_controls_sparsity, heads_differ, tasks_differ, classes_rank, maps_mislead)
