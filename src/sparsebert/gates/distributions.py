"""Random gates with a gradient: Gumbel-sigmoid and hard-concrete, soft or hard with a straight-through gradient.

Both are written in the difference of two Gumbel noises, G1 - G2, which is logistic: logit(U) of one uniform number.
"""

from abc import ABC, abstractmethod
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from sparsebert import draws
from sparsebert.errors import GateError

DistributionName = Literal["gumbel_sigmoid", "hard_concrete"]  # as settings and files spell them


def logistic_noise(
    heads: int, units: int, *, seed: int, step: int, micro: int, device: torch.device
) -> Float[Tensor, "heads units"]:
    """G1 - G2 for every unit of a micro-batch, the same on every rank and after every resume."""
    generator = draws.generator(seed, "gates/noise", step, micro)
    noise = np.empty((heads, units), dtype=np.float32)
    for head in noise:  # one at a time: a processor's cache holds it
        uniform = generator.random(units).clip(2.0**-53, 1 - 2.0**-53)
        head[:] = np.log(uniform) - np.log1p(-uniform)
    return torch.from_numpy(noise).to(device)


class Distribution(ABC):
    """Of a gate's values, given the log-odds of keeping each unit."""

    def sample(
        self, logits: Float[Tensor, "*units"], noise: Float[Tensor, "*units"], temperature: float, *, hard: bool = False
    ) -> Float[Tensor, "*units"]:
        """Of sigmoid((logits + G1 - G2) / temperature); hard: 0 or 1 forward, that gradient backward."""
        # In the memory of the sum: at a value an entry fresh memory costs more than the arithmetic.
        return self._value((logits + noise).div_(temperature).sigmoid_(), hard)

    def mean(self, logits: Float[Tensor, "*units"], *, hard: bool = False) -> Float[Tensor, "*units"]:
        """The gate without noise: what runs at test time."""
        return self._value(torch.sigmoid(logits), hard)

    @abstractmethod
    def kept_probability(self, logits: Float[Tensor, "*units"], temperature: float) -> Float[Tensor, "*units"]:
        """How likely a unit is on."""

    @abstractmethod
    def shaped(self, soft: Float[Tensor, "*units"]) -> Float[Tensor, "*units"]:
        """A sigmoid as a value of this distribution."""

    def _value(self, soft: Tensor, hard: bool) -> Tensor:
        soft = self.shaped(soft)
        return (soft > 0.5).to(soft) + (soft - soft.detach()) if hard else soft


class GumbelSigmoid(Distribution):
    """The sigmoid itself; a unit is on above one half."""

    def kept_probability(self, logits: Float[Tensor, "*units"], temperature: float) -> Float[Tensor, "*units"]:
        return torch.sigmoid(logits)

    def shaped(self, soft: Float[Tensor, "*units"]) -> Float[Tensor, "*units"]:
        return soft


class HardConcrete(Distribution):
    """The sigmoid stretched and cut to [0, 1] (Louizos et al., 2018): exactly 0 and exactly 1 happen, in between has a
    gradient; a unit is on when it is not exactly 0."""

    low, high = -0.1, 1.1  # what it is stretched to

    def kept_probability(self, logits: Float[Tensor, "*units"], temperature: float) -> Float[Tensor, "*units"]:
        return torch.sigmoid_(logits - temperature * float(np.log(-self.low / self.high)))

    def shaped(self, soft: Float[Tensor, "*units"]) -> Float[Tensor, "*units"]:
        return (soft * (self.high - self.low)).add_(self.low).clamp(0.0, 1.0)


DISTRIBUTIONS: dict[str, Distribution] = {"gumbel_sigmoid": GumbelSigmoid(), "hard_concrete": HardConcrete()}


def distribution_named(name: str) -> Distribution:
    """A distribution by the name that settings and files know it by."""
    if name not in DISTRIBUTIONS:
        raise GateError(f"there is no distribution {name!r}; expected one of {', '.join(DISTRIBUTIONS)}")
    return DISTRIBUTIONS[name]
