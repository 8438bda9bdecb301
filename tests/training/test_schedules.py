import pytest
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from sparsebert.training.schedules import rate_factor, weight_groups


def test_the_rate_rises_to_its_peak_and_falls_to_almost_nothing() -> None:
    factors = [rate_factor(step, 8, 4, "linear") for step in range(8)]
    assert factors == [0.25, 0.5, 0.75, 1.0, 1.0, 0.75, 0.5, 0.25]


def test_a_constant_schedule_stays_at_its_peak_after_warm_up() -> None:
    assert [rate_factor(step, 5, 2, "constant") for step in range(5)] == [0.5, 1.0, 1.0, 1.0, 1.0]


@given(st.integers(1, 200), st.integers(0, 250), st.sampled_from(["linear", "constant"]))
def test_every_step_moves_and_none_beyond_the_peak(num_steps: int, warmup: int, schedule: str) -> None:
    for step in range(num_steps):
        assert 0.0 < rate_factor(step, num_steps, warmup, schedule) <= 1.0  # type: ignore[arg-type]


def test_biases_and_normalisation_do_not_decay() -> None:
    module = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4))
    matrices, vectors = weight_groups(module, 1e-3, 0.01)
    assert [tuple(p.shape) for p in matrices["params"]] == [(4, 3)]
    assert [p.ndim for p in vectors["params"]] == [1, 1, 1]
    assert (matrices["weight_decay"], vectors["weight_decay"]) == (0.01, 0.0)
    assert matrices["lr"] == pytest.approx(1e-3)
