"""The paper's numbers as typed, and ours beside them."""

from dataclasses import replace
from statistics import fmean

import pytest

from sparsebert.report import paper
from sparsebert.report.findings_html import signed
from sparsebert.report.importance import importances
from sparsebert.report.losses import losses_table
from sparsebert.report.matching import Condition, at_least_as_sparse
from sparsebert.report.settings import facts, runs_table, settings_table
from sparsebert.report.study import Study
from sparsebert.report.table_html import said
from sparsebert.report.tables import TABLES, Table, importance_table, patterns_table

_OFF_IN_PRINT = {
    ("no-diagonal", 83.9),
    ("longformer", 80.1),
    (("unstructured", 1e-3), 81.6),
    (("structured", 1e-4), 80.9),
}


def test_printed_averages_are_the_means_of_their_rows() -> None:
    """Four of them are off by about 0.1 in the paper itself; any other difference would be a slip of ours."""
    rows = [*paper.GLUE_DEV.items(), *paper.GLUE_TEST.items()]
    rows += [(name, row[1:]) for name, row in (*paper.PATTERNS.items(), *paper.LEARNED.items())]
    off = {(name, row[-1]) for name, row in rows if abs(fmean(row[:-1]) - row[-1]) > 0.0501}
    assert off <= _OFF_IN_PRINT
    assert all(abs(fmean(row[:-1]) - row[-1]) < 0.21 for _, row in rows)


@pytest.mark.parametrize("make", TABLES, ids=lambda make: make.__name__)
def test_every_cell_of_ours_is_filled_and_names_its_runs(make: object, study: Study) -> None:
    table: Table = make(study)  # type: ignore[operator]
    ours = [row for row in table.rows if row.group != "Test set" and "Devlin" not in row.label]
    assert ours
    for row in ours:
        assert len(row.cells) == len(table.columns)
        for cell in row.cells:
            assert isinstance(cell.value, float), (table.key, row.label)
            assert cell.runs
            assert isinstance(cell.paper, float), (table.key, row.label)


def test_a_cell_is_the_mean_over_seeds(study: Study) -> None:
    table = TABLES[0](study)
    cell = table.rows[0].cells[table.columns.index("RTE")]
    runs = [run.score for run in study.scored("diagonal", family="dense", task="rte")]
    assert cell.value == pytest.approx(fmean(score for score in runs if score is not None))
    assert len(cell.runs) == 3
    assert cell.interval is not None
    assert cell.interval[0] < cell.value < cell.interval[1]  # type: ignore[operator]


def test_mnli_has_its_two_sections(study: Study) -> None:
    row = TABLES[0](study).rows[0]
    assert row.cells[1].value - row.cells[0].value == pytest.approx(0.4)  # type: ignore[operator]


def test_importance_is_read_from_the_gate(study: Study) -> None:
    found = [summary for _, summary in importances(study, "soft")]
    assert len(found) == 3
    assert fmean(found[0].categories["diagonal"]) == pytest.approx(0.46, abs=0.02)
    assert found[0].heat is not None
    assert len(importance_table(study).rows) == 7


def test_settings_are_read_from_run_json(study: Study) -> None:
    table = settings_table(study)
    assert {row.label: row.cells[0].value for row in table.rows}["Batch size"] == "8"
    assert all(row.cells[0].value for row in table.rows)


def test_every_run_has_a_row(study: Study) -> None:
    assert len(runs_table(study).rows) == len(study.runs)
    assert dict(facts(study))["Runs"] == f"{len(study.runs)} of {len(study.runs)} finished"


def test_a_learned_row_is_of_patterns_without_the_diagonal_alone(study: Study) -> None:
    """The ablation makes the same patterns with their diagonals, which are denser."""
    table = TABLES[2](study)
    row = next(row for row in table.rows if row.label == "DAM_s λ=0.1")
    without = study.finished("adapt", family="learned", kind="structured", penalty=0.1, diagonal=False)
    assert row.cells[0].value == pytest.approx(100 * fmean(run.sparsity or 0 for run in without))


def test_every_condition_has_its_loss_and_what_it_is_more_than_dense(study: Study) -> None:
    table = losses_table(study)
    rows = {(row.group, row.label): row for row in table.rows}
    assert len(rows) == len(table.rows)
    assert {id_ for row in table.rows for id_ in row.cells[1].runs} == {run.id for run in study.finished("adapt")}
    dense, random_drop = (rows["Dense and the diagonal", name] for name in ("dense", "random-drop"))
    assert dense.cells[2].value is None
    assert len(random_drop.cells[1].runs) == 9  # three draws of three seeds, three values of the mean
    assert random_drop.cells[3].value == 3
    for row in table.rows:
        assert isinstance(row.cells[1].value, float)
        if row is not dense:
            assert row.cells[2].value == pytest.approx(row.cells[1].value - dense.cells[1].value)  # type: ignore[operator]
    assert [row.label for row in table.rows if row.group == "Pruned at random"][:2] == ["10%", "20%"]
    by_p = [float(row.label.rstrip("%")) for row in table.rows if row.group == "Pruned by P"]
    assert by_p == sorted({*range(10, 100, 10), 85, 95})  # of two studies
    assert "DAM_s λ=0.1, without the diagonal" in {row.label for row in table.rows}


@pytest.mark.parametrize(
    "condition",
    [
        {},
        {"family": "pruned", "method": "p"},
        {"family": ["pruned"]},
        {"family": "learned", "kind": "other"},
        {"family": 3},
    ],
)
def test_a_run_of_an_odd_condition_is_left_out_of_the_losses(study: Study, condition: dict[str, object]) -> None:
    run = replace(next(study.finished("adapt", family="pruned")), condition=condition)
    assert losses_table(replace(study, runs=(*study.runs, run))).rows == losses_table(study).rows


def test_of_learned_patterns_the_nearest_in_sparsity_is_compared_and_not_the_densest(study: Study) -> None:
    handmade = Condition("handmade", pattern="longformer", diagonal=True)
    own = handmade.sparsity(study, "patterns")
    assert own is not None
    found = next(study.finished("adapt", study="patterns", family="learned", kind="structured", penalty=1e-4))
    denser = replace(found, result={**(found.result or {}), "sparsity": own - 0.004})
    others = [run for run in study.runs if run.condition.get("penalty") != 1e-4]
    by_loss = at_least_as_sparse(replace(study, runs=(*others, denser)), handmade, Condition.adapted)
    assert {one.sparsity_target for one in by_loss} == {0.887}


def test_a_hand_made_pattern_is_compared_at_its_own_sparsity_by_loss_and_at_the_nearest_penalty_by_score(
    study: Study,
) -> None:
    handmade = Condition("handmade", pattern="longformer", diagonal=True)
    by_loss = at_least_as_sparse(study, handmade, Condition.adapted)
    assert {one.sparsity_target for one in by_loss} == {0.887}
    by_score = at_least_as_sparse(study, handmade, Condition.scored)
    assert [one.kind for one in by_score] == ["structured"]  # no unstructured one with scores is as sparse
    assert by_score[0].penalty == 1e-4


def test_negative_numbers_have_a_minus_sign_and_tiny_ones_a_digit() -> None:
    assert said(-2.72, 1) == "\N{MINUS SIGN}2.7"
    assert signed(-0.00031, "nats") == "\N{MINUS SIGN}0.0003"
    assert signed(0.0, "points") == "+0.00"


def test_a_pattern_learned_to_a_sparsity_has_a_row_of_the_main_table_once_it_is_scored(study: Study) -> None:
    adapted = next(study.finished("adapt", study="patterns", family="learned", sparsity_target=0.887))
    scored = next(run for run in study.scored("patterns") if run.task == "stsb")
    condition = {**adapted.condition, "task": "stsb"}
    more = replace(study, runs=(*study.runs, replace(scored, id="new", condition=condition)))
    before, after = patterns_table(study).rows, patterns_table(more).rows
    assert after[:-1] == before
    assert (after[-1].group, after[-1].label) == ("Learned to a sparsity", "DAM_u 88.7%")
    assert [cell.runs for cell in after[-1].cells[1:] if cell.value is not None] == [("new",), ("new",)]
