from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsebert.errors import TheoryError
from sparsebert.theory.grid import Grid
from sparsebert.theory.token_layers import ThreePieces, applied, clearing, quantiser, value_map


@given(st.fractions(-3, 8, max_denominator=50), st.fractions(-3, 8, max_denominator=50))
def test_the_quantiser_rounds_down_inside_and_sends_the_rest_away(first, second):
    grid = Grid(3, 2, 5)
    expected = [value // 1 if 0 <= value < 5 else grid.outside for value in (first, second)]
    assert applied(quantiser(grid), [first, second]) == expected


def test_the_quantiser_has_as_many_layers_as_the_lemma_says():
    assert len(quantiser(Grid(3, 2, 5))) == 2 * 5 + 2


def test_marks_lengthen_the_last_entry_only():
    grid = Grid(3, 2, 5, marked=True)
    assert len(quantiser(grid)) == 5 + 3 * 5 + 2
    assert applied(quantiser(grid), [Fraction(9, 2), Fraction(29, 2)]) == [4, 14]


def test_three_pieces_are_continuous_from_the_right():
    pieces = ThreePieces(0, 2, below=(1, 0), between=(0, 7), above=(-1, 0))
    assert [pieces(value) for value in (-1, 0, 1, 2, 3)] == [-1, 7, 7, -2, -3]


def test_a_value_map_sends_contexts_to_their_values_and_the_rest_to_zero():
    grid = Grid(3, 2, 2)
    half = Fraction(1, 2)
    layers = value_map({900: ([898, 1], [half, 0]), 950: ([944, 3], [0, 1])}, grid, 4)
    assert applied(layers, [898, 1]) == [half, 0]
    assert applied(layers, [944, 3]) == [0, 1]
    assert applied(layers, [555, 3]) == [0, 0]


def test_clearing_takes_one_layer_for_one_entry_and_one_more_than_the_entries_otherwise():
    assert [len(clearing(Grid(3, width, 2 if width > 1 else 3), 2)) for width in (1, 2, 3)] == [1, 3, 4]


@given(st.lists(st.integers(0, 3), min_size=3, max_size=3), st.integers(1000, 9999))
def test_clearing_leaves_outputs_and_removes_strays(entries, stray):
    grid = Grid(3, 3, 4)
    layers = clearing(grid, 64)
    assert applied(layers, entries) == entries
    assert applied(layers, [entries[0] + stray, *entries[1:]]) == [0, 0, 0]


def test_a_function_as_large_as_the_contexts_is_refused():
    with pytest.raises(TheoryError, match="scale the function down"):
        value_map({5: ([5], [1])}, Grid(3, 1, 3), 40)
