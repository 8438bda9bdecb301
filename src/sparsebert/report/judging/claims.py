"""The paper's nine claims, each as comparisons of runs."""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from sparsebert.importance.categories import NAMES
from sparsebert.report.judging.claim import Claim, Comparison
from sparsebert.report.judging.importance import by_head
from sparsebert.report.judging.rows import (
    Runs,
    RunsOf,
    adapted,
    all_rows,
    at_least_as_sparse,
    handmade,
    is_of_paper,
    learned_for_stages,
    name_of,
    pairs_by_diagonal,
    pruned,
    scored,
    two_stage_at,
)
from sparsebert.report.judging.samples import Sample, gains, scores
from sparsebert.studies.results import Study
from sparsebert.studies.runs import DENSE, NO_DIAGONAL, RANDOM_DROP, Condition


def diagonal_is_least(study: Study) -> list[Comparison]:
    return [_between(study, other, "diagonal") for other in NAMES if other != "diagonal"]


def neighbours_are_most(study: Study) -> list[Comparison]:
    return [_between(study, "±1", other) for other in NAMES if other != "±1"]


def specials_above_others(study: Study) -> list[Comparison]:
    return [_between(study, one, "other") for one in ("[CLS]", "[SEP]")]


def _between(study: Study, above: str, below: str) -> Comparison:
    """Two categories of P in every head of every run."""
    difference = by_head(study, "soft", above, below, lambda high, low: high - low)
    return Comparison(f"{above} - {below}", "P", difference)


def no_diagonal_not_worse(study: Study) -> list[Comparison]:
    return _compared(study, "no diagonal - dense", NO_DIAGONAL, DENSE)


def random_drop_not_better(study: Study) -> list[Comparison]:
    return _compared(study, "no diagonal - random drop", NO_DIAGONAL, RANDOM_DROP)


def p_beats_random(study: Study) -> list[Comparison]:
    found = []
    for by_p in pruned(study, "pruning", "p"):
        at_random = replace(by_p, method="random")
        if at_random in all_rows(study, "pruning"):
            name = f"by P - at random, {by_p.sparsity_target:.0%}"
            found += _compared(study, name, by_p, at_random, "pruning")
    return found


def learned_beat_handmade(study: Study) -> list[Comparison]:
    found = []
    for row in filter(is_of_paper, handmade(study)):
        for measure in (SCORE, LOSS):
            for learned in at_least_as_sparse(study, row, measure.runs_of):
                name = f"{name_of(learned)} - {name_of(row)}"
                found += measure.compared(study, name, learned, row, "patterns")
    return found


def dropping_harms_no_pattern(study: Study) -> list[Comparison]:
    pairs = [pair for pair in pairs_by_diagonal(study) if is_of_paper(pair[0])]
    return [one for with_, without in pairs for one in _compared(study, name_of(without), without, with_)]


def one_stage_beats_two(study: Study) -> list[Comparison]:
    found = []
    for learned in filter(is_of_paper, learned_for_stages(study)):
        for measure in (SCORE, LOSS):
            one = measure.sample(measure.runs_of(study, learned, "stages"))
            difference = one.minus(two_stage_at(study, one, learned, measure.sample))
            found += measure.comparison(f"{name_of(learned)} - two-stage", difference)
    return found


class Measure(NamedTuple):
    """What rows are compared by."""

    words: str
    unit: str
    runs_of: RunsOf
    sample: Callable[[Runs], Sample]

    def comparison(self, name: str, difference: Sample) -> list[Comparison]:
        return [Comparison(f"{name} ({self.words})", self.unit, difference)] if difference else []

    def compared(
        self, study: Study, name: str, one: Condition, other: Condition, used_by: str | None
    ) -> list[Comparison]:
        """Nothing where not both rows have it."""
        ours, theirs = (self.sample(self.runs_of(study, row, used_by)) for row in (one, other))
        return self.comparison(name, ours.minus(theirs))


SCORE = Measure("score", "points", scored, scores)
LOSS = Measure("MLM loss", "nats", adapted, gains)


def _compared(
    study: Study, name: str, one: Condition, other: Condition, used_by: str | None = None
) -> list[Comparison]:
    return [*SCORE.compared(study, name, one, other, used_by), *LOSS.compared(study, name, one, other, used_by)]


CLAIMS = (
    Claim(1, "diagonal", "importance", "The diagonal is the least important position.", diagonal_is_least),
    Claim(2, "neighbours", "importance", "Neighbours are the most important positions.", neighbours_are_most),
    Claim(3, "special tokens", "importance", "[CLS] and [SEP] matter more than others.", specials_above_others),
    Claim(
        4,
        "no diagonal",
        "diagonal",
        "A model without the diagonal is not worse than the dense one.",
        no_diagonal_not_worse,
        "non-inferiority",
    ),
    Claim(
        5,
        "random drop",
        "diagonal",
        "Dropping as many entries at random is not better than dropping the diagonal.",
        random_drop_not_better,
        "non-inferiority",
    ),
    Claim(6, "pruning", "pruning", "Pruning by P beats random pruning at every sparsity.", p_beats_random),
    Claim(
        7,
        "learned patterns",
        "patterns",
        "Learned patterns beat hand-made ones that are no sparser.",
        learned_beat_handmade,
    ),
    Claim(
        8,
        "ablation",
        "ablation",
        "Dropping the diagonal harms no pattern.",
        dropping_harms_no_pattern,
        "non-inferiority",
    ),
    Claim(
        9,
        "stages",
        "stages",
        "Learning the pattern with the weights beats pruning P afterwards.",
        one_stage_beats_two,
    ),
)
