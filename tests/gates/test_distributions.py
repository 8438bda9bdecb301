"""Gumbel-sigmoid and hard-concrete: gradients, ranges, probabilities, no NaN anywhere."""

from typing import get_args

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sparsebert import gates
from sparsebert.errors import GateError
from sparsebert.gates.distributions import DISTRIBUTIONS, DistributionName, distribution_named, logistic_noise

CPU = torch.device("cpu")


def noise(units: int = 8, step: int = 0) -> torch.Tensor:
    return logistic_noise(3, units, seed=0, step=step, micro=0, device=CPU)


@given(
    st.sampled_from(sorted(DISTRIBUTIONS)),
    st.floats(1e-3, 10),
    st.lists(st.floats(-1e4, 1e4), min_size=8, max_size=8),
    st.booleans(),
)
def test_values_and_gradients_are_finite_and_values_lie_in_the_unit_interval(
    name: str, temperature: float, alphas: list[float], hard: bool
) -> None:
    alpha = torch.tensor([alphas] * 3, dtype=torch.float32).requires_grad_()
    sample = DISTRIBUTIONS[name].sample(alpha, noise(), temperature, hard=hard)
    sample.sum().backward()
    assert ((sample >= 0) & (sample <= 1)).all()
    assert alpha.grad is not None
    assert alpha.grad.isfinite().all()


@pytest.mark.parametrize("name", sorted(DISTRIBUTIONS))
@pytest.mark.parametrize("temperature", [0.3, 1.0, 5.0])
def test_soft_samples_have_the_gradient_of_finite_differences(name: str, temperature: float) -> None:
    alpha = torch.linspace(-1.5, 1.5, 24, dtype=torch.float64).view(3, 8).requires_grad_()
    drawn = noise().double().clamp(-0.4, 0.4)  # away from the corners of hard-concrete's cut
    assert torch.autograd.gradcheck(lambda a: DISTRIBUTIONS[name].sample(a, drawn, temperature), (alpha,))


def test_a_hard_sample_is_zero_or_one_and_has_the_gradient_of_the_soft_one() -> None:
    alpha = torch.linspace(-2, 2, 24).view(3, 8).requires_grad_()
    distribution = DISTRIBUTIONS["gumbel_sigmoid"]
    hard, soft = (distribution.sample(alpha, noise(), 0.7, hard=flag) for flag in (True, False))
    assert torch.isin(hard.detach(), torch.tensor([0.0, 1.0])).all()
    assert torch.equal(hard > 0.5, soft > 0.5)
    torch.testing.assert_close(torch.autograd.grad(hard.sum(), alpha), torch.autograd.grad(soft.sum(), alpha))


@pytest.mark.parametrize("name", sorted(DISTRIBUTIONS))
@pytest.mark.parametrize("temperature", [0.4, 2 / 3, 1.0])
def test_the_kept_probability_is_how_often_a_sample_is_on(name: str, temperature: float) -> None:
    alpha = torch.tensor([-2.0, 0.0, 1.0]).view(1, 3)
    drawn = logistic_noise(20_000, 3, seed=1, step=0, micro=0, device=CPU)
    sample = DISTRIBUTIONS[name].sample(alpha, drawn, temperature)
    on = sample > (0.5 if name == "gumbel_sigmoid" else 0.0)
    expected = DISTRIBUTIONS[name].kept_probability(alpha, temperature)
    torch.testing.assert_close(on.float().mean(0, keepdim=True), expected, atol=0.012, rtol=0)


def test_the_noise_is_logistic_and_a_function_of_seed_step_and_part() -> None:
    drawn = logistic_noise(100, 1000, seed=3, step=5, micro=1, device=CPU)
    assert torch.equal(drawn, logistic_noise(100, 1000, seed=3, step=5, micro=1, device=CPU))
    assert not torch.equal(drawn, logistic_noise(100, 1000, seed=3, step=6, micro=1, device=CPU))
    assert abs(float(drawn.mean())) < 0.03
    assert abs(float(drawn.std()) - np.pi / np.sqrt(3)) < 0.03


def test_without_noise_hard_concrete_reaches_zero_and_one() -> None:
    values = DISTRIBUTIONS["hard_concrete"].mean(torch.tensor([[-5.0, 0.0, 5.0]]))
    assert values.tolist() == [[0.0, 0.5, 1.0]]


def test_settings_name_every_distribution_there_is() -> None:
    assert set(get_args(DistributionName)) == set(DISTRIBUTIONS)


def test_an_unknown_distribution_is_refused_with_those_there_are() -> None:
    with pytest.raises(GateError, match=r"no distribution 'hard_conrete'; expected one of gumbel_sigmoid, hard_con"):
        distribution_named("hard_conrete")
    with pytest.raises(GateError, match="distribution is 'hard_conrete'"):
        gates.Structured(8, 1, distribution="hard_conrete")


def test_a_gate_draws_from_the_distribution_that_its_settings_name() -> None:
    cut = gates.Structured(64, 4, distribution="hard_concrete", temperature=0.4)
    cut.resample(0, 0)
    units = cut.units().detach()
    assert (units == 0).any()
    assert torch.equal(units, DISTRIBUTIONS["hard_concrete"].sample(cut.alpha, cut._noise, 0.4).detach())
