import pytest

from sparsebert.errors import TheoryError
from sparsebert.theory.grid import Grid


def test_the_constants_are_those_of_the_paper_for_three_tokens():
    grid = Grid(tokens=3, width=1, resolution=4)
    assert grid.local_gain == 4
    assert grid.global_gain == (4 - 1) * (4**3 + 4 + 1)  # Delta of Section 3.2


def test_a_row_is_read_as_digits_of_its_level():
    grid = Grid(tokens=3, width=2, resolution=4)
    assert grid.rows([0, 7, 13]) == [[0, 0], [3, 1], [1, 3]]


def test_marks_give_each_position_its_own_block_of_levels():
    grid = Grid(tokens=3, width=2, resolution=2, marked=True)
    assert grid.rows([3, 4, 11]) == [[1, 1], [0, 2], [1, 5]]
    assert [row[0] + 2 * row[1] for row in grid.rows([3, 4, 11])] == [3, 4, 11]


@pytest.mark.parametrize(("sizes", "words"), [((2, 1, 8), "at least 3"), ((5, 1, 4), "raise the resolution")])
def test_grids_that_cannot_work_are_refused(sizes, words):
    with pytest.raises(TheoryError, match=words):
        Grid(*sizes)


def test_width_is_refused_below_one():
    with pytest.raises(TheoryError, match="at least one entry"):
        Grid(3, 0, 4)
