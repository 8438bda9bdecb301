import pytest

from sparsebert.errors import TheoryError
from sparsebert.theory import exact
from sparsebert.theory.control import control
from sparsebert.theory.grid import Grid


def verdicts(outcomes):
    return [outcome.violations == 0 for outcome in outcomes.values()]


def test_without_the_diagonal_everything_holds():
    assert verdicts(control(Grid(6, 1, 2, marked=True), exact.every_other(6))) == [True] * 4


def test_two_blocks_break_the_order_in_the_second_block_and_share_contexts():
    outcomes = control(Grid(6, 1, 2, marked=True), exact.blocks(6, 3))
    assert verdicts(outcomes) == [False, True, True, False]
    assert outcomes["order after every phase"].counter_example["phase"] == 4
    # The first token cannot know the last one's cell.
    example = outcomes["contextual mapping, second half"].counter_example
    assert example["inputs"] == [[0, 2, 4, 6, 8, 10], [0, 2, 4, 6, 8, 11]]
    assert example["token"] == 0


def test_blocks_of_two_cannot_shift_at_all():
    outcomes = control(Grid(4, 1, 2, marked=True), exact.blocks(4, 2))
    assert outcomes["order after every phase"].counter_example["phase"] == 1


def test_more_inputs_than_can_be_followed_are_refused():
    with pytest.raises(TheoryError, match="lower the resolution"):
        control(Grid(6, 1, 9, marked=True), exact.every_other(6))
