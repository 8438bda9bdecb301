import numpy as np

from sparsebert.theory import claims, statements
from sparsebert.theory.cases import Case, case, equal_neighbours, num_inputs
from sparsebert.theory.grid import Grid


def all_inputs(*sizes, marked=False):
    return case(Grid(*sizes, marked), limit=10_000, samples=0, seed=0)


def test_cases_list_every_set_or_every_sequence():
    assert all_inputs(3, 1, 4).levels.tolist() == [[0, 1, 2], [0, 1, 3], [0, 2, 3], [1, 2, 3]]
    assert len(all_inputs(3, 1, 4, marked=True).levels) == num_inputs(Grid(3, 1, 4, True)) == 64


def test_samples_are_inputs_and_repeatable():
    grid = Grid(4, 1, 50)
    first, second = (case(grid, limit=10, samples=100, seed=3) for _ in range(2))
    assert not first.exhaustive
    assert (np.diff(first.levels, axis=1) > 0).all()
    assert first.levels.max() < 50
    assert (first.levels == second.levels).all()


def test_equal_entries_are_found_whatever_the_type():
    keys = np.array([5, 7, 5, 9, 7])
    for column in (keys, keys.astype(object)):
        assert sorted(equal_neighbours((column,), np.arange(5))) == [(0, 2), (1, 4)]


def broken(inputs, token, value):
    """The case with one shifted level replaced: what a claim must notice."""
    shifted = inputs.shifted.copy()
    shifted[0, token] = value
    case = Case(inputs.grid, inputs.levels, True)
    case.__dict__["shifted"] = shifted
    return case


def test_each_claim_notices_a_wrong_value():
    inputs = all_inputs(4, 1, 5)
    order = [int(value) for value in inputs.shifted[0]]
    assert claims.base_step(broken(inputs, 0, 1)).violations == 1
    assert claims.expansion(broken(inputs, 2, order[2] + 1)).violations == 1
    assert claims.ordering(broken(inputs, 2, order[1])).violations == 1
    assert claims.ordering_margin(broken(inputs, 2, order[1] + 1)).violations == 1
    assert claims.bounds(broken(inputs, 3, inputs.grid.global_gain)).violations == 1
    assert claims.order_after_first_global_shift(broken(inputs, 2, order[3])).violations == 1
    assert claims.interval(broken(inputs, 2, 2 * inputs.grid.global_gain)).violations == 1
    assert claims.modulo_repaired(broken(inputs, 0, inputs.grid.global_gain)).violations == 1
    assert claims.layers_match_closed_form(broken(inputs, 0, 1)).counter_example == {"inputs": [[0, 1, 2, 3]]}
    assert claims.entries_decode(broken(inputs, 0, order[0] + 1)).violations == 1
    assert claims.last_identifies(broken(inputs, 3, inputs.shifted[1, 3])).counter_example == {
        "inputs": [[0, 1, 2, 3], [0, 1, 2, 4]]
    }
    assert claims.only_twins_collide(broken(inputs, 3, inputs.shifted[1, 3])).violations == 1
    assert claims.distinct_within(broken(inputs, 1, order[0])).violations == 1


def test_the_mod_step_is_false_for_all_narrow_inputs_but_not_for_all_wide_ones():
    narrow, wide = all_inputs(3, 1, 8), all_inputs(3, 2, 3)
    assert claims.modulo_as_printed(narrow).violations == len(narrow.levels)
    assert 0 < claims.modulo_as_printed(wide).violations < len(wide.levels)


def test_the_mod_step_as_printed_agrees_with_plain_integers():
    inputs = all_inputs(3, 2, 2)
    modulus = inputs.grid.global_gain * inputs.grid.resolution
    wrong = [
        any(inputs.context(row, token) % modulus != inputs.shifted[row, token] for token in range(3))
        for row in range(len(inputs.levels))
    ]
    assert claims.modulo_as_printed(inputs).violations == sum(wrong)


def test_the_share_of_repeated_tokens_is_counted_right():
    grid = Grid(3, 1, 4)
    sequences = np.indices((4, 4, 4)).reshape(3, -1).T
    counted = sum(len(set(row)) < 3 for row in sequences.tolist())
    assert statements.repeated(grid) * 64 == counted == 40
