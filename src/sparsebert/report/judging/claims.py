"""The paper's nine claims, each as comparisons of runs."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from sparsebert.importance.categories import NAMES
from sparsebert.report.judging import rows
from sparsebert.report.judging.claim import Comparison, claim
from sparsebert.report.judging.endpoints import endpoints_of
from sparsebert.report.judging.importance import by_head
from sparsebert.report.judging.samples import Sample
from sparsebert.studies.results import Study
from sparsebert.studies.runs import DENSE, NO_DIAGONAL, RANDOM_DROP, Condition, percent


class Measure(NamedTuple):
    """What rows are compared by."""

    words: str
    unit: str
    of: Callable[[Study, Condition, str | None], Sample]


def measures_of(study: Study) -> list[Measure]:
    """Scores of tasks, and the endpoints of the study's protocol."""
    own = [Measure(one.words, one.unit, rows.gains_by(one)) for one in endpoints_of(study)]
    return [Measure("score", "points", rows.scores_of), *own]


def _compared(
    study: Study,
    name: str,
    one: Condition,
    other: Condition,
    used_by: str | None = None,
    measures: Sequence[Measure] | None = None,
) -> list[Comparison]:
    """Two rows, by everything that both of them have."""
    return [
        Comparison(f"{name} ({words})", unit, of(study, one, used_by).minus(of(study, other, used_by)))
        for words, unit, of in measures or measures_of(study)
    ]


def _between(study: Study, above: str, below: str) -> Comparison:
    """Two categories of P in every head of every run."""
    difference = by_head(study, "soft", above, below, lambda high, low: high - low)
    return Comparison(f"{above} - {below}", "P", difference)


@claim(1, "diagonal", "importance", "The diagonal is the least important position.")
def diagonal_is_least(study: Study) -> list[Comparison]:
    return [_between(study, other, "diagonal") for other in NAMES if other != "diagonal"]


@claim(2, "neighbours", "importance", "Neighbours are the most important positions.")
def neighbours_are_most(study: Study) -> list[Comparison]:
    return [_between(study, "±1", other) for other in NAMES if other != "±1"]


@claim(3, "special tokens", "importance", "[CLS] and [SEP] matter more than others.")
def specials_above_others(study: Study) -> list[Comparison]:
    return [_between(study, one, "other") for one in ("[CLS]", "[SEP]")]


@claim(4, "no diagonal", "diagonal", "A model without the diagonal is not worse than the dense one.", "non-inferiority")
def no_diagonal_not_worse(study: Study) -> list[Comparison]:
    return _compared(study, "no diagonal - dense", NO_DIAGONAL, DENSE)


@claim(
    5,
    "random drop",
    "diagonal",
    "Dropping as many entries at random is not better than dropping the diagonal.",
    "non-inferiority",
)
def random_drop_not_better(study: Study) -> list[Comparison]:
    return _compared(study, "no diagonal - random drop", NO_DIAGONAL, RANDOM_DROP)


@claim(6, "pruning", "pruning", "Pruning by P beats random pruning at every sparsity.")
def p_beats_random(study: Study) -> list[Comparison]:
    found = []
    for by_p in rows.pruned(study, "pruning", "p"):
        name = f"by P - at random, {percent(by_p.sparsity_target or 0.0)}"
        found += _compared(study, name, by_p, replace(by_p, method="random"), "pruning")
    return found


@claim(7, "learned patterns", "patterns", "Learned patterns beat hand-made ones that are no sparser.")
def learned_beat_handmade(study: Study) -> list[Comparison]:
    found = []
    for row in filter(rows.is_of_paper, rows.handmade(study)):
        for measure in measures_of(study):
            for learned in rows.at_least_as_sparse(study, row, measure.of):
                name = f"{rows.name_of(learned)} - {rows.name_of(row)}"
                found += _compared(study, name, learned, row, "patterns", [measure])
    return found


@claim(8, "ablation", "ablation", "Dropping the diagonal harms no pattern.", "non-inferiority")
def dropping_harms_no_pattern(study: Study) -> list[Comparison]:
    pairs = [pair for pair in rows.pairs_by_diagonal(study) if rows.is_of_paper(pair[0])]
    return [one for with_, without in pairs for one in _compared(study, rows.name_of(without), without, with_)]


@claim(9, "stages", "stages", "Learning the pattern with the weights beats pruning P afterwards.")
def one_stage_beats_two(study: Study) -> list[Comparison]:
    found = []
    for learned in filter(rows.is_of_paper, rows.learned_for_stages(study)):
        for words, unit, of in measures_of(study):
            one = of(study, learned, "stages")
            difference = one.minus(rows.two_stage_at(study, one, learned, of))
            found.append(Comparison(f"{rows.name_of(learned)} - two-stage ({words})", unit, difference))
    return found


CLAIMS = (
    diagonal_is_least,
    neighbours_are_most,
    specials_above_others,
    no_diagonal_not_worse,
    random_drop_not_better,
    p_beats_random,
    learned_beat_handmade,
    dropping_harms_no_pattern,
    one_stage_beats_two,
)
