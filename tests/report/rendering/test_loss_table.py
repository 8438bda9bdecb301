"""Held-out losses of everything that was pre-trained under a pattern."""

from dataclasses import replace

import pytest

from sparsebert.report.rendering.loss_table import losses_table
from sparsebert.studies.results import Study
from sparsebert.studies.runs import Condition


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
    ("condition", "group", "label"),
    [
        (Condition("handmade", "window"), "Hand-made", "window"),
        (Condition("learned", kind="banded", penalty=0.1), "Learned, banded", "banded λ=0.1"),
        (Condition("pruned", method="magnitude", sparsity_target=0.5), "Other", "50%"),
        (Condition("routed"), "Other", "routed"),
    ],
)
def test_what_the_paper_does_not_have_is_a_row_too(study: Study, condition: Condition, group: str, label: str) -> None:
    run = replace(next(study.finished("adapt", family="pruned")), id="new", condition=condition)
    before = losses_table(study).rows
    after = losses_table(replace(study, runs=(*study.runs, run))).rows
    assert [(row.group, row.label) for row in after if row not in before] == [(group, label)]
    assert len(after) == len(before) + 1
