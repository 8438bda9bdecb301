import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sparsebert import attend, patterns
from sparsebert.errors import TheoryError
from sparsebert.theory import exact, network
from sparsebert.theory.cases import case
from sparsebert.theory.grid import Grid
from sparsebert.theory.shifts import as_integer
from sparsebert.theory.token_layers import ThreePieces, quantiser

SIZES = [(3, 1, 8, False), (4, 1, 6, False), (3, 2, 3, False), (3, 2, 4, False), (3, 1, 7, True), (4, 1, 2, True)]


@pytest.mark.parametrize("sizes", SIZES)
def test_float64_and_exact_contexts_agree_on_every_input(sizes):
    grid = Grid(*sizes)
    network.check_range(grid)
    inputs = case(grid, limit=10_000, samples=0, seed=0)
    rows = torch.tensor(
        [[[float(x) for x in row] for row in grid.rows(inputs.tokens(k))] for k in range(len(inputs.levels))],
        dtype=torch.float64,
    )
    found = network.attention_layers(grid)(rows) @ torch.tensor(grid.direction, dtype=torch.float64)
    expected = [
        [as_integer(tuple(int(d[k, t]) for d in inputs.raw_contexts), grid.global_gain) for t in range(grid.tokens)]
        for k in range(len(inputs.levels))
    ]
    assert found.to(torch.int64).tolist() == expected
    assert (found == found.round()).all()


def test_the_exact_layers_agree_under_another_pattern_too():
    grid = Grid(6, 1, 1, marked=True)
    keys = exact.blocks(6, 3)
    keep = np.zeros((1, 6, 6), dtype=bool)
    for query, row in enumerate(keys):
        keep[0, query, row] = True
    rows = torch.tensor([[[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]]], dtype=torch.float64)
    found = network.attention_layers(grid, patterns.from_keep(torch.from_numpy(keep)))(rows)[0, :, 0]
    assert [int(value) for value in found] == exact.contexts(grid.rows(range(6)), grid, keys)


def test_contexts_beyond_float64_are_refused():
    with pytest.raises(TheoryError, match=r"beyond 2\^53"):
        network.Approximator(Grid(3, 1, 8, marked=True), [])
    with pytest.raises(TheoryError, match=r"6 tokens at 9 levels reach"):
        network.check_range(Grid(6, 1, 9))


def test_just_below_the_limit_float64_is_accepted():
    network.check_range(Grid(3, 1, 21))
    with pytest.raises(TheoryError):
        network.check_range(Grid(3, 1, 22))


@given(st.sets(st.integers(0, 60), min_size=3, max_size=6), st.floats(0.5, 40.0), st.integers(0, 60))
def test_softmax_attention_is_within_the_bound_of_hardmax(chosen, scale, level):
    levels = sorted(chosen)
    pattern = patterns.full(length=len(levels)).without_diagonal()
    values = torch.tensor(levels, dtype=torch.float64)[None, None, :, None]
    threshold = level + 0.5
    found = attend(values - threshold, values, values, pattern=pattern, scale=scale, backend="reference")[0, 0, :, 0]
    hard = exact.head(levels, 2 * level + 1, exact.every_other(len(levels)))
    # Every other key scores at least 1/2 below the best.
    bound = (len(levels) - 2) * math.exp(-scale / 2) * (levels[-1] - levels[0])
    assert max(abs(float(a) - float(b)) for a, b in zip(found, hard, strict=True)) <= bound + 1e-12


def test_at_the_hard_scale_softmax_is_hardmax_to_the_last_bit():
    levels = [0, 1, 5, 6]
    values = torch.tensor(levels, dtype=torch.float64)[None, None, :, None]
    pattern = patterns.full(length=4).without_diagonal()
    found = attend(values - 0.5, values, values, pattern=pattern, scale=network.HARD, backend="reference")
    assert found[0, 0, :, 0].tolist() == exact.head(levels, 1, exact.every_other(4))


@given(st.floats(-4, 9), st.integers(0, 4))
def test_four_relus_draw_every_window_of_the_quantiser(value, k):
    ramp, layer = 0.25, quantiser(Grid(3, 1, 5))[k + 1].pieces
    # It is 0 at both ends of the cell k .. k + 1, falls by 1 a unit in it, and rises again along the ramp at its end.
    knots = [k - ramp, k, k + 1 - ramp, k + 1]
    slopes = [0.0, 0.0, -1.0, (1 - ramp) / ramp, 0.0]
    total = sum(
        (after - before) * max(0.0, value - knot)
        for knot, before, after in zip(knots, slopes, slopes[1:], strict=False)
    )
    found = network.bent(torch.tensor(value, dtype=torch.float64), layer, ramp)
    assert float(found) == pytest.approx(total, abs=1e-8)


def test_a_ramp_takes_the_last_stretch_before_a_jump():
    window = ThreePieces(2, 4, between=(0, 1))
    values = torch.tensor([1.0, 1.75, 2.0, 3.0, 3.5, 3.75, 4.0, 5.0], dtype=torch.float64)
    assert network.bent(values, window, 0.5).tolist() == [0, 0.5, 1, 1, 1, 0.5, 0, 0]
    assert network.bent(values, window, 0.0).tolist() == [0, 0, 1, 1, 1, 1, 0, 0]
