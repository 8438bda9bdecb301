from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sparsebert.theory import exact, shifts
from sparsebert.theory.grid import Grid


@st.composite
def inputs(draw, largest=12):
    """A grid without marks and the ascending levels of one of its inputs."""
    tokens = draw(st.integers(3, 7))
    resolution = draw(st.integers(tokens, largest))
    levels = draw(st.sets(st.integers(0, resolution - 1), min_size=tokens, max_size=tokens))
    return Grid(tokens, 1, resolution), sorted(levels)


def closed_contexts(grid, levels):
    moved = shifts.shifted(np.array([levels], dtype=object), grid.local_gain)
    digits = shifts.after_second_global_shift(moved)
    return [
        shifts.as_integer(tuple(part[0, token] for part in digits), grid.global_gain) for token in range(grid.tokens)
    ]


def test_three_tokens_shift_as_worked_out_by_hand():
    # 1 + 8(6 - 4) = 17; 4 + 8(17 - 6) = 92; 6 + 8(92 - 17) = 606
    assert shifts.shifted(np.array([[1, 4, 6]]), 8).tolist() == [[17, 92, 606]]


@given(inputs())
def test_the_layers_compute_the_closed_form(drawn):
    grid, levels = drawn
    assert exact.contexts(grid.rows(levels), grid) == closed_contexts(grid, levels)


@given(inputs(largest=200))
def test_the_expansion_equals_the_recurrence(drawn):
    grid, levels = drawn
    array = np.array([levels], dtype=object)
    moved = shifts.shifted(array, grid.local_gain)
    assert [shifts.expanded(array, grid.local_gain, token)[0] for token in range(grid.tokens)] == moved[0].tolist()


@given(inputs(largest=200))
def test_what_the_proof_of_the_bounds_says(drawn):
    grid, levels = drawn
    moved = shifts.shifted(np.array([levels], dtype=object), grid.local_gain)[0].tolist()
    levels_, n = grid.num_levels, grid.tokens
    assert levels_ <= moved[0] <= levels_ * (levels_ - 2)
    assert all(right < levels_ * left for left, right in pairwise(moved))
    assert moved[-1] + moved[-2] < levels_ ** (n + 1) - levels_**n < grid.global_gain
    assert max(closed_contexts(grid, levels)) < grid.context_bound


def test_normalised_digits_are_the_same_number():
    digits = (np.array([[2]]), np.array([[37]]), np.array([[9]]))
    carried = shifts.normalised(digits, 10)
    assert [part[0, 0] for part in carried] == [5, 7, 9]


def test_wide_tokens_are_narrow_tokens_of_a_finer_grid():
    wide, narrow = Grid(3, 2, 3), Grid(3, 1, 9)
    levels = [2, 5, 7]
    assert exact.contexts(wide.rows(levels), wide) == exact.contexts(narrow.rows(levels), narrow)


def test_python_integers_take_over_where_int64_would_overflow():
    assert shifts.integer_type(Grid(6, 1, 9)) is np.int64
    assert shifts.integer_type(Grid(12, 1, 64)) is object
