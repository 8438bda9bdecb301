"""The paper's numbers as typed, and ours beside them."""

from collections.abc import Callable
from dataclasses import replace
from statistics import fmean

import pytest

from sparsebert.report import paper
from sparsebert.report.judging.importance import importances
from sparsebert.report.rendering.score_tables import (
    ablation_table,
    glue_table,
    importance_table,
    patterns_table,
    swag_table,
)
from sparsebert.report.rendering.tables import Row, Table
from sparsebert.studies.results import Study, StudyRun
from sparsebert.studies.runs import Condition
from sparsebert.tasks import GLUE

_OFF_IN_PRINT = {"no-diagonal": 83.9, "Longformer": 80.1, "DAM_u λ=0.001": 81.6, "DAM_s λ=0.0001": 80.9}


def test_printed_averages_are_the_means_of_their_rows() -> None:
    """Four of them are off by about 0.1 in the paper itself; any other difference would be a slip of ours."""
    tables = (*paper.GLUE.values(), *paper.PATTERNS.values())
    rows = [(name, row) for table in tables for name, row in table.items()]
    off = {name: row["average"] for name, row in rows if abs(_mean(row) - row["average"]) > 0.0501}
    assert off.items() <= _OFF_IN_PRINT.items()
    assert all(abs(_mean(row) - row["average"]) < 0.21 for _, row in rows)
    assert len(rows) == 3 + 4 + 6 + 8


def _mean(row: paper.PrintedRow) -> float:
    return fmean(row[column] for column in paper.GLUE_COLUMNS)


@pytest.mark.parametrize("make", [glue_table, swag_table, patterns_table, ablation_table])
def test_every_cell_of_ours_is_filled_and_names_its_runs(make: Callable[[Study], Table], study: Study) -> None:
    table = make(study)
    ours = [row for row in table.rows if row.group != "Test set" and "Devlin" not in row.label]
    assert ours
    for row in ours:
        assert len(row.cells) == len(table.columns)
        for cell in row.cells:
            assert isinstance(cell.value, float), (table.key, row.label)
            assert cell.runs
            assert isinstance(cell.paper, float), (table.key, row.label)


def test_a_study_without_runs_shows_the_paper_s_rows(study: Study) -> None:
    nothing = replace(study, runs=())
    for make in (glue_table, swag_table, patterns_table, ablation_table):
        before, after = make(study), make(nothing)
        assert [(row.group, row.label) for row in after.rows] == [(row.group, row.label) for row in before.rows]
        assert {cell.value for row in after.rows for cell in row.cells} == {None}


def test_a_cell_is_the_mean_over_seeds(study: Study) -> None:
    table = glue_table(study)
    cell = table.rows[0].cells[table.columns.index("RTE")]
    runs = [run.score for run in study.scored("diagonal", family="dense", task="rte")]
    assert cell.value == pytest.approx(fmean(score for score in runs if score is not None))
    assert len(cell.runs) == 3
    assert cell.interval is not None
    assert cell.interval[0] < cell.value < cell.interval[1]  # type: ignore[operator]


def test_mnli_has_its_two_sections(study: Study) -> None:
    row = glue_table(study).rows[0]
    assert row.cells[1].value - row.cells[0].value == pytest.approx(0.4)  # type: ignore[operator]


def test_importance_is_read_from_the_gate(study: Study) -> None:
    found = [summary for _, summary in importances(study, "soft")]
    assert len(found) == 3
    assert fmean(found[0].categories["diagonal"]) == pytest.approx(0.46, abs=0.02)
    assert found[0].heat is not None
    assert len(importance_table(study).rows) == 7


def test_a_learned_row_is_of_patterns_without_the_diagonal_alone(study: Study) -> None:
    """The ablation makes the same patterns with their diagonals, which are denser."""
    row = next(row for row in patterns_table(study).rows if row.label == "DAM_s λ=0.1")
    without = study.finished("adapt", family="learned", kind="structured", penalty=0.1, diagonal=False)
    assert row.cells[0].value == pytest.approx(100 * fmean(run.sparsity or 0 for run in without))


def with_runs_of(study: Study, condition: Condition, used_by: str) -> Study:
    """The study, and runs of another condition, as if it had made them."""
    like = [*study.finished("adapt", family="dense"), *study.scored("diagonal", family="dense")]
    more = [_like(run, condition, used_by) for run in like if run.task in (*GLUE, None)]
    return replace(study, runs=(*study.runs, *more))


def _like(run: StudyRun, condition: Condition, used_by: str) -> StudyRun:
    own = replace(condition, task=run.task, seed=run.seed)
    return replace(run, id=f"{run.id}-{own.family}-{own.diagonal}", condition=own, studies=(used_by,))


@pytest.mark.parametrize(
    ("condition", "group", "label"),
    [
        (Condition("handmade", "window"), "Hand-made", "window"),
        (Condition("learned", kind="structured", penalty=0.5), "Learned, structured", "DAM_s λ=0.5"),
        (Condition("learned", kind="banded", penalty=0.1), "Learned, banded", "banded λ=0.1"),
        (Condition("learned", kind="structured", sparsity_target=0.9), "Learned to a sparsity", "DAM_s 90%"),
    ],
)
def test_a_pattern_that_the_paper_does_not_have_is_a_row_of_the_main_table(
    study: Study, condition: Condition, group: str, label: str
) -> None:
    before = patterns_table(study).rows
    after = patterns_table(with_runs_of(study, condition, "patterns")).rows
    new = [row for row in after if row not in before]
    assert [(row.group, row.label) for row in new] == [(group, label)]
    assert len(after) == len(before) + 1
    _is_filled_without_the_paper(new[0])
    places = [row.group for row in after]
    assert places == sorted(places, key=places.index)  # a group stands together


def test_a_pattern_that_the_paper_does_not_have_is_a_row_of_the_other_tables(study: Study) -> None:
    more = with_runs_of(study, Condition("handmade", "window"), "diagonal")
    rows = {row.label: row for row in glue_table(more).rows}
    _is_filled_without_the_paper(rows["window"])
    assert "window" in {row.label for row in swag_table(more).rows}
    for diagonal in (True, False):
        more = with_runs_of(more, Condition("handmade", "window", diagonal=diagonal), "ablation")
    rows = {row.label: row for row in ablation_table(more).rows}
    assert rows["window"].group == "Hand-made"
    _is_filled_without_the_paper(rows["window"])


def _is_filled_without_the_paper(row: Row) -> None:
    assert all(isinstance(cell.value, float) and cell.paper is None for cell in row.cells)


def test_a_pattern_learned_to_a_sparsity_has_no_row_before_it_is_scored(study: Study) -> None:
    assert list(study.finished("adapt", study="patterns", family="learned", sparsity_target=0.887))
    assert "Learned to a sparsity" not in {row.group for row in patterns_table(study).rows}
