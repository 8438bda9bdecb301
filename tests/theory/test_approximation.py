import math

import pytest
import torch

from sparsebert import draws
from sparsebert.theory.approximation import (
    FIRST_TIMES_LAST,
    LINEAR,
    TARGETS,
    approximator,
    distances,
    error_against_delta,
    error_against_sharpness,
    floor_without_positions,
    sampled_distance,
    slope,
    symmetrised,
)
from sparsebert.theory.grid import Grid
from sparsebert.theory.network import Sharpness


def points(count, tokens=3, width=1):
    return torch.from_numpy(draws.generator(0, "test").random((count, tokens, width)))


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
@pytest.mark.parametrize("sizes", [(3, 1, 4), (3, 2, 2), (4, 1, 2)])
def test_with_marks_the_network_is_f_at_the_corner_of_every_cell(target, sizes):
    grid = Grid(*sizes, marked=True)
    inputs = points(200, grid.tokens, grid.width)
    corners = torch.floor(inputs * grid.resolution) / grid.resolution
    found = approximator(target.function, grid)(inputs)
    torch.testing.assert_close(found, target.function(corners), atol=1e-12, rtol=0)


def test_without_marks_the_network_is_exact_unless_two_tokens_share_a_cell():
    grid = Grid(3, 1, 6)
    inputs = points(300)
    cells = torch.floor(inputs * 6)
    apart = torch.tensor([len(set(row)) == 3 for row in cells[..., 0].tolist()])
    found = approximator(LINEAR.function, grid)(inputs)
    torch.testing.assert_close(found[apart], LINEAR.function(cells / 6)[apart], atol=1e-12, rtol=0)
    assert found.abs().max() <= LINEAR.largest


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_the_error_falls_with_delta_and_stays_under_the_bound(target):
    study = error_against_delta(target, 3, 1, (2, 3, 4, 5), marked=True, points=3)[0]
    assert all(error < bound for error, bound in zip(study["errors"], study["bounds"], strict=True))
    assert study["errors"] == sorted(study["errors"], reverse=True)
    assert 0.8 < study["last_slope"] < 1.05


def test_a_linear_function_is_missed_by_a_constant_times_delta():
    study = error_against_delta(LINEAR, 3, 1, (2, 4), marked=True)[0]
    # On every cell f - g = (o_i + mean o)/2 with o uniform in [0, delta)^3: mean square 7/24 delta² each.
    assert study["errors"] == pytest.approx([math.sqrt(3 * 7 / 24) / 2, math.sqrt(3 * 7 / 24) / 4])


def test_without_marks_repeated_tokens_set_the_slope():
    one, two, four = error_against_delta(LINEAR, 3, 1, (8, 12), marked=False, powers=(1, 2, 4), points=2)
    for study, predicted in ((one, 1), (two, 1 / 2), (four, 1 / 4)):
        assert study["last_slope"] == pytest.approx(predicted, rel=0.2)
        assert all(error < bound for error, bound in zip(study["errors"], study["bounds"], strict=True))


def test_no_network_without_positions_gets_below_the_floor():
    floor = floor_without_positions(FIRST_TIMES_LAST, 3, 1)
    # Three rows, each the variance of x1·x3 around the mean of the three products: 2/3·(1/9 - 1/12).
    assert floor == pytest.approx(math.sqrt(3 * 2 / 3 * (1 / 9 - 1 / 12)))
    network = approximator(FIRST_TIMES_LAST.function, Grid(3, 1, 8))
    assert distances(FIRST_TIMES_LAST.function, network, [2], 3)[0] > floor
    with_positions = approximator(FIRST_TIMES_LAST.function, Grid(3, 1, 5, marked=True))
    assert distances(FIRST_TIMES_LAST.function, with_positions, [2], 3)[0] < floor


def test_the_symmetrised_function_is_equivariant_and_leaves_equivariant_ones_alone():
    inputs, order = points(5), [2, 0, 1]
    mean = symmetrised(FIRST_TIMES_LAST.function)
    torch.testing.assert_close(mean(inputs[:, order]), mean(inputs)[:, order])
    torch.testing.assert_close(symmetrised(LINEAR.function)(inputs), LINEAR.function(inputs))


def test_softmax_and_relus_come_near_hardmax_as_they_get_sharper():
    grid = Grid(3, 1, 2, marked=True)
    study = error_against_sharpness(LINEAR, grid, (5.0, 120.0), (0.1, 0.001), samples=300)
    coarse, fine = study["errors"]["0.1"], study["errors"]["0.001"]
    assert fine[1] < coarse[1] < coarse[0]
    assert fine[1] == pytest.approx(study["hardmax"], rel=0.1)


def test_sampling_agrees_with_integration():
    network = approximator(LINEAR.function, Grid(3, 1, 2, marked=True))
    integrated = distances(LINEAR.function, network, [2], 3)[0]
    assert sampled_distance(LINEAR.function, network, 2, 4000) == pytest.approx(integrated, rel=0.03)


def test_a_sharp_network_off_the_ramps_is_the_hardmax_network():
    grid = Grid(3, 1, 2, marked=True)
    inputs = torch.tensor([[[0.1], [0.2], [0.7]], [[0.9], [0.3], [0.6]]], dtype=torch.float64)
    soft = approximator(LINEAR.function, grid, Sharpness(scale=200.0, ramp=0.05))(inputs)
    torch.testing.assert_close(soft, approximator(LINEAR.function, grid)(inputs), atol=1e-9, rtol=0)


def test_slope_reads_the_power():
    assert slope([0.5, 0.25, 0.125], [3 * 0.5**0.7, 3 * 0.25**0.7, 3 * 0.125**0.7]) == pytest.approx(0.7)
