"""Gumbel-sigmoid and hard-concrete: gradients, ranges, probabilities, no NaN anywhere."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sparsebert.gates.sampling import (
    Distribution,
    gumbel_sigmoid,
    hard_concrete,
    kept_probability,
    logistic_noise,
    mean_gate,
)

CPU = torch.device("cpu")
SAMPLERS = {"gumbel_sigmoid": gumbel_sigmoid, "hard_concrete": hard_concrete}


def noise(units: int = 8, step: int = 0) -> torch.Tensor:
    return logistic_noise(3, units, seed=0, step=step, micro=0, device=CPU)


@given(
    st.sampled_from(sorted(SAMPLERS)),
    st.floats(1e-3, 10),
    st.lists(st.floats(-1e4, 1e4), min_size=8, max_size=8),
    st.booleans(),
)
def test_values_and_gradients_are_finite_and_values_lie_in_the_unit_interval(
    sampler: str, temperature: float, alphas: list[float], hard: bool
) -> None:
    alpha = torch.tensor([alphas] * 3, dtype=torch.float32).requires_grad_()
    sample = SAMPLERS[sampler](alpha, noise(), temperature, hard=hard)
    sample.sum().backward()
    assert ((sample >= 0) & (sample <= 1)).all()
    assert alpha.grad is not None
    assert alpha.grad.isfinite().all()


@pytest.mark.parametrize("sampler", sorted(SAMPLERS))
@pytest.mark.parametrize("temperature", [0.3, 1.0, 5.0])
def test_soft_samples_have_the_gradient_of_finite_differences(sampler: str, temperature: float) -> None:
    alpha = torch.linspace(-1.5, 1.5, 24, dtype=torch.float64).view(3, 8).requires_grad_()
    drawn = noise().double().clamp(-0.4, 0.4)  # away from the corners of hard-concrete's cut
    assert torch.autograd.gradcheck(lambda a: SAMPLERS[sampler](a, drawn, temperature), (alpha,))


def test_a_hard_sample_is_zero_or_one_and_has_the_gradient_of_the_soft_one() -> None:
    alpha = torch.linspace(-2, 2, 24).view(3, 8).requires_grad_()
    hard, soft = (gumbel_sigmoid(alpha, noise(), 0.7, hard=flag) for flag in (True, False))
    assert torch.isin(hard.detach(), torch.tensor([0.0, 1.0])).all()
    assert torch.equal(hard > 0.5, soft > 0.5)
    torch.testing.assert_close(torch.autograd.grad(hard.sum(), alpha), torch.autograd.grad(soft.sum(), alpha))


@pytest.mark.parametrize("distribution", sorted(SAMPLERS))
@pytest.mark.parametrize("temperature", [0.4, 2 / 3, 1.0])
def test_the_kept_probability_is_how_often_a_sample_is_on(distribution: Distribution, temperature: float) -> None:
    alpha = torch.tensor([-2.0, 0.0, 1.0]).view(1, 3)
    drawn = logistic_noise(20_000, 3, seed=1, step=0, micro=0, device=CPU)
    sample = SAMPLERS[distribution](alpha, drawn, temperature)
    on = sample > (0.5 if distribution == "gumbel_sigmoid" else 0.0)
    expected = kept_probability(alpha, distribution, temperature)
    torch.testing.assert_close(on.float().mean(0, keepdim=True), expected, atol=0.012, rtol=0)


def test_the_noise_is_logistic_and_a_function_of_seed_step_and_part() -> None:
    drawn = logistic_noise(100, 1000, seed=3, step=5, micro=1, device=CPU)
    assert torch.equal(drawn, logistic_noise(100, 1000, seed=3, step=5, micro=1, device=CPU))
    assert not torch.equal(drawn, logistic_noise(100, 1000, seed=3, step=6, micro=1, device=CPU))
    assert abs(float(drawn.mean())) < 0.03
    assert abs(float(drawn.std()) - np.pi / np.sqrt(3)) < 0.03


def test_without_noise_hard_concrete_reaches_zero_and_one() -> None:
    values = mean_gate(torch.tensor([[-5.0, 0.0, 5.0]]), "hard_concrete")
    assert values.tolist() == [[0.0, 0.5, 1.0]]
