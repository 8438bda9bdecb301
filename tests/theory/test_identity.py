from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsebert.errors import TheoryError
from sparsebert.theory import identity, shifts
from sparsebert.theory.grid import Grid


def moved(levels, gain):
    return shifts.shifted(np.array([levels], dtype=object), gain)[0].tolist()


@given(st.sets(st.integers(0, 9_999), min_size=3, max_size=12))
def test_any_entry_of_q_gives_back_the_whole_input(chosen):
    levels = sorted(chosen)
    grid = Grid(len(levels), 1, 10_000)
    after = shifts.after_second_global_shift(np.array([moved(levels, grid.local_gain)], dtype=object))
    for token in range(grid.tokens):
        entry = shifts.as_integer(tuple(part[0, token] for part in after), grid.global_gain)
        assert identity.decoded(entry, grid) == (levels, token)


@given(st.sets(st.integers(0, 999), min_size=3, max_size=11))
def test_the_last_two_shifted_levels_give_back_the_input(chosen):
    levels = sorted(chosen)
    after = moved(levels, 1000)
    assert identity.levels_from_last_two(after[-2], after[-1], len(levels), 1000) == levels


def test_a_number_that_is_no_context_is_refused():
    grid = Grid(3, 1, 8)
    for entry in (0, 12345, 8_062_714_677 + 1):
        with pytest.raises(TheoryError, match="no entry of a context"):
            identity.decoded(entry, grid)
    assert identity.decoded(8_062_714_677, grid) == ([1, 4, 6], 0)


@pytest.mark.parametrize(
    ("tokens", "first", "second"),
    [
        (4, [0, 2, 3, 5], [1, 2, 4, 5]),
        (6, [0, 2, 3, 5, 6, 8], [1, 2, 4, 5, 7, 8]),
        (8, [0, 2, 3, 5, 6, 8, 9, 11], [1, 2, 4, 5, 7, 8, 10, 11]),
    ],
)
def test_the_smallest_twins_share_their_last_level_and_differ_in_every_odd_one(tokens, first, second):
    gain = 3 * tokens // 2
    a, b = moved(first, gain), moved(second, gain)
    assert [right - left for left, right in zip(a, b, strict=True)] == [1, 0] * (tokens // 2)


@pytest.mark.parametrize(("tokens", "levels"), [(3, 14), (4, 13), (5, 12), (6, 13), (8, 14)])
def test_the_number_of_collisions_is_that_of_the_family(tokens, levels):
    inputs = np.array(list(combinations(range(levels), tokens)), dtype=object)
    counts = np.unique(shifts.shifted(inputs, levels)[:, -1], return_counts=True)[1]
    assert sum(count * (count - 1) // 2 for count in counts) == identity.num_twin_pairs(tokens, levels)


def test_below_three_halves_n_levels_there_are_no_twins():
    assert identity.num_twin_pairs(8, 11) == 0
    assert identity.num_twin_pairs(8, 12) == 1
