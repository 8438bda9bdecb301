"""The scorecard's page is read back: what stands there as finished is neither run again nor lost."""

from dataclasses import replace
from pathlib import Path

import pytest

from scorecard.reliability import read_page, write_page
from scorecard.row import Outcome, Row
from scorecard.rows import ROWS
from scorecard.runner import State
from tests.conftest import PROJECT

PAGE = PROJECT / "docs" / "results" / "reliability.md"
ROW = Row("N9", "a test", "2/2", 2, lambda trial: None, words=lambda figures: f"{len(figures)} figures")


def page_of(row: Row, folder: Path, *outcomes: Outcome) -> Path:
    state, page = State(folder / "state"), folder / "page.md"
    for outcome in outcomes:
        state.add(row, outcome)
    write_page([row], state, page)
    return page


def test_every_row_of_the_committed_page_is_read_back_as_finished() -> None:
    page = read_page(PAGE)
    assert [row.name for row in ROWS if not page[row.name].is_finished(row)] == []


def test_a_page_that_is_written_again_keeps_every_row(tmp_path: Path) -> None:
    copy = tmp_path / "page.md"
    copy.write_text(PAGE.read_text())
    write_page(ROWS, State(tmp_path / "state"), copy)
    assert read_page(copy) == read_page(PAGE)


@pytest.mark.parametrize(
    "row", [ROW, replace(ROW, test="another test"), replace(ROW, target="3/3")], ids=["same", "test", "target"]
)
def test_a_row_that_asks_for_something_else_is_not_finished(row: Row, tmp_path: Path) -> None:
    page = page_of(ROW, tmp_path, Outcome(0, True), Outcome(1, True))
    assert read_page(page)["N9"].is_finished(row) == (row == ROW)


@pytest.mark.parametrize("outcomes", [[], [Outcome(0, True)], [Outcome(0, True), Outcome(1, False, "broken")]])
def test_a_row_with_trials_left_or_failed_is_not_finished(outcomes: list[Outcome], tmp_path: Path) -> None:
    assert not read_page(page_of(ROW, tmp_path, *outcomes))["N9"].is_finished(ROW)


def test_a_few_trials_do_not_replace_a_finished_row_but_one_that_failed_does(tmp_path: Path) -> None:
    page = page_of(ROW, tmp_path, Outcome(0, True), Outcome(1, True))
    whole = read_page(page)["N9"]
    State(tmp_path / "state").forget(ROW)
    assert read_page(page_of(ROW, tmp_path, Outcome(0, True)))["N9"] == whole
    assert "- N9, trial 1: broken" in page_of(ROW, tmp_path, Outcome(1, False, "broken")).read_text()
