"""Rows come from the study; which runs belong to each, and which are compared."""

from dataclasses import replace

import pytest

from sparsebert.report.judging.rows import (
    adapted,
    all_rows,
    at_least_as_sparse,
    handmade,
    is_of_paper,
    learned_at_penalties,
    name_of,
    scored,
    sparsity_of,
)
from sparsebert.studies.results import Study, StudyRun
from sparsebert.studies.runs import DENSE, RANDOM_DROP, Condition
from tests.report.synthetic import World, make_study

LONGFORMER = Condition("handmade", "longformer")


def test_a_row_has_every_seed_draw_and_task_of_its_condition(study: Study) -> None:
    assert len(adapted(study, RANDOM_DROP)) == 9  # three draws of three seeds
    assert {run.task for run in scored(study, DENSE, "diagonal")} >= {"rte", "swag", "squad2"}
    assert LONGFORMER in all_rows(study, "patterns")
    assert replace(LONGFORMER, diagonal=False) not in all_rows(study, "patterns")


def test_a_learned_row_is_without_its_diagonal_where_that_was_made(study: Study) -> None:
    assert not any(row.diagonal for row in learned_at_penalties(study, "ablation"))
    with_diagonal = tuple(run for run in study.runs if run.condition.diagonal)
    assert all(row.diagonal for row in learned_at_penalties(replace(study, runs=with_diagonal), "ablation"))


@pytest.mark.parametrize("pretraining", ["whole", "continued"])
def test_the_base_run_is_the_dense_one_of_its_seed_where_no_other_is_planned(pretraining: str) -> None:
    study = make_study(World(seeds=2, tasks=()))
    runs = study.runs
    if pretraining == "whole":
        runs = tuple(run for run in runs if run.condition.row != DENSE or run.seed != 0)
    else:
        runs = tuple(_unfinished(run) if run.condition.row == DENSE else run for run in runs)
    found = adapted(replace(study, runs=runs), DENSE)
    assert [(run.stage, run.seed) for run in found] == ([("base", 0), ("adapt", 1)] if pretraining == "whole" else [])


def _unfinished(run: StudyRun) -> StudyRun:
    return replace(run, result=None)


def test_what_the_paper_does_not_have_stands_after_what_it_has_and_decides_no_claim(study: Study) -> None:
    star = next(study.finished("adapt", family="handmade", pattern="star"))
    new = replace(star, id="new", condition=Condition("handmade", "window"))
    rows = handmade(replace(study, runs=(new, *study.runs)))
    assert [name_of(row) for row in rows][-2:] == ["Star", "window"]
    assert [is_of_paper(row) for row in rows][-2:] == [True, False]


def test_of_learned_patterns_the_nearest_in_sparsity_is_compared_and_not_the_densest(study: Study) -> None:
    own = sparsity_of(study, LONGFORMER, "patterns")
    assert own is not None
    found = next(study.finished("adapt", study="patterns", family="learned", kind="structured", penalty=1e-4))
    denser = replace(found, result={**(found.result or {}), "sparsity": own - 0.004})
    others = [run for run in study.runs if run.condition.penalty != 1e-4]
    by_loss = at_least_as_sparse(replace(study, runs=(*others, denser)), LONGFORMER, adapted)
    assert {one.sparsity_target for one in by_loss} == {0.887}


def test_a_hand_made_pattern_is_compared_at_its_own_sparsity_by_loss_and_at_the_nearest_penalty_by_score(
    study: Study,
) -> None:
    by_loss = at_least_as_sparse(study, LONGFORMER, adapted)
    assert {one.sparsity_target for one in by_loss} == {0.887}
    by_score = at_least_as_sparse(study, LONGFORMER, scored)
    assert [one.kind for one in by_score] == ["structured"]  # no unstructured one with scores is as sparse
    assert by_score[0].penalty == 1e-4
