"""The paper's claims, each as comparisons of runs; positive differences are those that the paper reports."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from sparsebert.importance.categories import NAMES
from sparsebert.report import claims_in_words as words
from sparsebert.report.importance import by_head
from sparsebert.report.margins import IMPORTANCE, LOSS, SCORE
from sparsebert.report.matching import (
    Condition,
    at_least_as_sparse,
    conditions,
    describe,
    pruned_at,
    two_stage_at,
)
from sparsebert.report.pairs import Part, Sample, gains, not_inferior, scores, superior
from sparsebert.report.paper import HANDMADE, HANDMADE_TITLES
from sparsebert.report.study import Run, Study

Kind = Literal["superiority", "non-inferiority"]
Family = Literal["claims", "words"]


@dataclass(frozen=True)
class Claim:
    """number: as the paper's order has it; family: within which Holm's correction is made."""

    number: int
    name: str
    study: str  # whose runs it is judged by
    statement: str
    kind: Kind
    margin: tuple[tuple[str, float], ...]  # unit -> margin
    parts: Callable[[Study], list[Part]]
    family: Family = "claims"


def diagonal_is_least(study: Study) -> list[Part]:
    return [
        superior(f"{other} - diagonal", "P", _between(study, other, "diagonal"), IMPORTANCE)
        for other in NAMES
        if other != "diagonal"
    ]


def neighbours_are_most(study: Study) -> list[Part]:
    return [
        superior(f"±1 - {other}", "P", _between(study, "±1", other), IMPORTANCE) for other in NAMES if other != "±1"
    ]


def specials_above_others(study: Study) -> list[Part]:
    return [superior(f"{one} - other", "P", _between(study, one, "other"), IMPORTANCE) for one in ("[CLS]", "[SEP]")]


def _between(study: Study, above: str, below: str) -> Sample:
    """Difference of two categories of P in every head of every run."""
    return by_head(study, "soft", above, below, lambda high, low: high - low)


def no_diagonal_not_worse(study: Study) -> list[Part]:
    return _both_measures(study, "no diagonal - dense", Condition("no-diagonal"), Condition("dense"), _not_inferior)


def random_drop_not_better(study: Study) -> list[Part]:
    return _both_measures(
        study, "no diagonal - random drop", Condition("no-diagonal"), Condition("random-drop"), _not_inferior
    )


def dropping_harms_no_pattern(study: Study) -> list[Part]:
    parts = []
    for with_, without in conditions.pairs_by_diagonal(study):
        parts += _both_measures(study, describe(without), without, with_, _not_inferior)
    return parts


def p_beats_random(study: Study) -> list[Part]:
    parts = []
    for sparsity in pruned_at(study, "pruning"):
        by_p, at_random = (Condition("pruned", method=method, sparsity_target=sparsity) for method in ("p", "random"))
        parts += _both_measures(study, f"by P - at random, {sparsity:.0%}", by_p, at_random, _superior, "pruning")
    return parts


def learned_beat_handmade(study: Study) -> list[Part]:
    parts = []
    for name in HANDMADE:
        handmade = Condition("handmade", pattern=name, diagonal=True)
        for runs_of, compared in ((Condition.scored, _by_score), (Condition.adapted, _by_loss)):
            for learned in at_least_as_sparse(study, handmade, runs_of):
                title = f"{describe(learned)} - {HANDMADE_TITLES[name]}"
                parts += compared(study, title, learned, handmade, _superior, "patterns")
    return parts


def one_stage_beats_two(study: Study) -> list[Part]:
    parts = []
    for learned in conditions.learned_for_stages(study):
        for measure, runs_of in ((scores, learned.scored), (gains, learned.adapted)):
            one = measure(runs_of(study, "stages"))
            two = two_stage_at(study, one, learned, measure)
            parts += _part(f"{describe(learned)} - two-stage", one.minus(two), measure is scores, _superior)
    return parts


Judge = Callable[[str, str, Sample, float], Part]


def _superior(name: str, unit: str, sample: Sample, margin: float) -> Part:
    return superior(name, unit, sample, margin)


def _not_inferior(name: str, unit: str, sample: Sample, margin: float) -> Part:
    return not_inferior(name, unit, sample, margin)


def _both_measures(
    study: Study, name: str, one: Condition, other: Condition, judge: Judge, used_by: str | None = None
) -> list[Part]:
    """Scores of tasks and held-out loss, each where both conditions have it."""
    return [compared for by in (_by_score, _by_loss) for compared in by(study, name, one, other, judge, used_by)]


def _by_score(
    study: Study, name: str, one: Condition, other: Condition, judge: Judge, used_by: str | None
) -> list[Part]:
    difference = scores(one.scored(study, used_by)).minus(scores(other.scored(study, used_by)))
    return _part(name, difference, True, judge)


def _by_loss(
    study: Study, name: str, one: Condition, other: Condition, judge: Judge, used_by: str | None
) -> list[Part]:
    difference = gains(one.adapted(study, used_by)).minus(gains(other.adapted(study, used_by)))
    return _part(name, difference, False, judge)


def _part(name: str, sample: Sample, is_score: bool, judge: Judge) -> list[Part]:
    if not sample:
        return []
    unit, margin, measure = ("points", SCORE, "score") if is_score else ("nats", LOSS, "MLM loss")
    return [judge(f"{name} ({measure})", unit, sample, margin)]


_ON_TASKS = (("points", SCORE), ("nats", LOSS))
_ON_P = (("P", IMPORTANCE),)

CLAIMS = (
    Claim(
        1,
        "diagonal",
        "importance",
        "The diagonal is the least important position.",
        "superiority",
        _ON_P,
        diagonal_is_least,
    ),
    Claim(
        2,
        "neighbours",
        "importance",
        "Neighbours are the most important positions.",
        "superiority",
        _ON_P,
        neighbours_are_most,
    ),
    Claim(
        3,
        "special tokens",
        "importance",
        "[CLS] and [SEP] matter more than others.",
        "superiority",
        _ON_P,
        specials_above_others,
    ),
    Claim(
        4,
        "no diagonal",
        "diagonal",
        "A model without the diagonal is not worse than the dense one.",
        "non-inferiority",
        _ON_TASKS,
        no_diagonal_not_worse,
    ),
    Claim(
        5,
        "random drop",
        "diagonal",
        "Dropping as many entries at random is not better than dropping the diagonal.",
        "non-inferiority",
        _ON_TASKS,
        random_drop_not_better,
    ),
    Claim(
        6,
        "pruning",
        "pruning",
        "Pruning by P beats random pruning at every sparsity.",
        "superiority",
        _ON_TASKS,
        p_beats_random,
    ),
    Claim(
        7,
        "learned patterns",
        "patterns",
        "Learned patterns beat hand-made ones that are no sparser.",
        "superiority",
        _ON_TASKS,
        learned_beat_handmade,
    ),
    Claim(
        8,
        "ablation",
        "ablation",
        "Dropping the diagonal harms no pattern.",
        "non-inferiority",
        _ON_TASKS,
        dropping_harms_no_pattern,
    ),
    Claim(
        9,
        "stages",
        "stages",
        "Learning the pattern with the weights beats pruning P afterwards.",
        "superiority",
        _ON_TASKS,
        one_stage_beats_two,
    ),
    Claim(
        10,
        "others are alike",
        "importance",
        "Other positions are of similar importance: distances beyond 5 differ by less than the diagonal does.",
        "superiority",
        _ON_P,
        words.others_are_alike,
        "words",
    ),
    Claim(
        11,
        "penalty",
        "patterns",
        "The penalty controls the sparsity: a larger one gives a sparser pattern.",
        "superiority",
        words.ON_SPARSITY,
        words.penalty_controls_sparsity,
        "words",
    ),
    Claim(
        12,
        "heads differ",
        "patterns",
        "Heads learn different patterns: more than a tenth of what two heads keep differs.",
        "superiority",
        words.ON_HEADS,
        words.heads_differ,
        "words",
    ),
    Claim(
        13,
        "redundancy",
        "pruning",
        "Tasks differ in redundancy: from the least to the most pruning RTE loses more than CoLA.",
        "superiority",
        _ON_TASKS[:1],
        words.tasks_differ,
        "words",
    ),
    Claim(
        14,
        "classes",
        "patterns",
        "Patterns with neighbours alone rank below those with globals too, and those below learned ones.",
        "superiority",
        _ON_TASKS[:1],
        words.classes_rank,
        "words",
    ),
    Claim(
        15,
        "maps mislead",
        "importance",
        "Trained attention maps show the diagonal above other positions; P shows it below.",
        "superiority",
        words.ON_MAPS,
        words.maps_mislead,
        "words",
    ),
)


def runs_of(study: Study, ids: tuple[str, ...]) -> list[Run]:
    """The runs behind a finding."""
    wanted = set(ids)
    return [run for run in study.runs if run.id in wanted]
