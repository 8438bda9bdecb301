from fractions import Fraction
from itertools import permutations

from sparsebert.theory import exact
from sparsebert.theory.grid import Grid


def test_patterns_of_keys_leave_out_the_diagonal():
    assert exact.every_other(3) == [[1, 2], [0, 2], [0, 1]]
    assert exact.blocks(4, 2) == [[1], [0], [3], [2]]


def test_a_head_gives_the_largest_above_its_threshold_and_the_smallest_below():
    # Threshold 3, doubled: token 1 lies below, tokens 4 and 6 above.
    assert exact.head([1, 4, 6], 6, exact.every_other(3)) == [4, 6, 4]


def test_on_the_threshold_hardmax_shares_its_weight():
    assert exact.head([0, 1, 2], 0, exact.every_other(3)) == [Fraction(3, 2), 2, 1]


def test_a_token_with_nobody_to_attend_to_receives_zero():
    assert exact.head([5, 1], 0, [[], [0]]) == [0, 5]


def test_each_selective_shift_moves_the_row_of_its_level():
    grid = Grid(3, 1, 8)
    seen = [exact.levels_of(step.rows, grid) for step in exact.attention_layers(grid.rows([1, 4, 6]), grid)]
    assert seen[0] == [1, 4, 6]
    assert seen[1] == seen[3] == [17, 4, 6]
    assert seen[4] == seen[5] == [17, 92, 6]
    assert seen[6] == seen[7] == [17, 92, 606]
    gain = grid.global_gain
    assert seen[8] == [17 + 606 * gain, 92 + 606 * gain, 606 + 92 * gain]


def test_without_marks_reordering_the_input_reorders_the_contexts():
    grid = Grid(3, 1, 8)
    known = dict(zip([1, 4, 6], exact.contexts(grid.rows([1, 4, 6]), grid), strict=True))
    for order in permutations([1, 4, 6]):
        assert exact.contexts(grid.rows(order), grid) == [known[token] for token in order]


def test_with_marks_every_order_has_contexts_of_its_own():
    grid = Grid(3, 1, 3, marked=True)
    entries = [
        entry
        for order in permutations([0, 1, 2])
        for entry in exact.contexts(grid.rows([token + 3 * i for i, token in enumerate(order)]), grid)
    ]
    assert len(set(entries)) == 18
