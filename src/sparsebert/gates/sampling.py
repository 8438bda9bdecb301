"""Random gates with a gradient: Gumbel-sigmoid and hard-concrete, soft or hard with a straight-through gradient.

Both are written in the difference of two Gumbel noises, G1 - G2, which is logistic: logit(U) of one uniform number.
"""

from typing import Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from sparsebert import draws

Distribution = Literal["gumbel_sigmoid", "hard_concrete"]
Sampling = Literal["mean", "soft", "hard"]  # mean: no noise at all, the soft P of the importance analysis

# Louizos et al. (2018): the sample is stretched to (gamma, zeta) and cut to [0, 1], so that 0 and 1 have weight.
_GAMMA, _ZETA = -0.1, 1.1


def logistic_noise(
    heads: int, units: int, *, seed: int, step: int, micro: int, device: torch.device
) -> Float[Tensor, "heads units"]:
    """G1 - G2 for every unit of a micro-batch, the same on every rank and after every resume."""
    uniform = draws.generator(seed, "gates/noise", step, micro).random((heads, units))
    uniform = uniform.clip(2.0**-53, 1 - 2.0**-53)
    return torch.from_numpy((np.log(uniform) - np.log1p(-uniform)).astype(np.float32)).to(device)


def gumbel_sigmoid(
    logits: Float[Tensor, "*units"], noise: Float[Tensor, "*units"], temperature: float, *, hard: bool = False
) -> Float[Tensor, "*units"]:
    """sigmoid((logits + G1 - G2) / temperature); hard: 0 or 1 forward, that gradient backward."""
    soft = torch.sigmoid((logits + noise) / temperature)
    return _straight_through(soft) if hard else soft


def hard_concrete(
    logits: Float[Tensor, "*units"], noise: Float[Tensor, "*units"], temperature: float, *, hard: bool = False
) -> Float[Tensor, "*units"]:
    """A stretched Gumbel-sigmoid cut to [0, 1]: exactly 0 and exactly 1 happen, in between has a gradient."""
    soft = _stretched(torch.sigmoid((logits + noise) / temperature))
    return _straight_through(soft) if hard else soft


def mean_gate(
    logits: Float[Tensor, "*units"], distribution: Distribution, *, hard: bool = False
) -> Float[Tensor, "*units"]:
    """The gate without noise: what runs at test time."""
    soft = torch.sigmoid(logits)
    soft = _stretched(soft) if distribution == "hard_concrete" else soft
    return _straight_through(soft) if hard else soft


def kept_probability(
    logits: Float[Tensor, "*units"], distribution: Distribution, temperature: float
) -> Float[Tensor, "*units"]:
    """How likely a unit is on: above one half (Gumbel-sigmoid) or not exactly zero (hard-concrete, closed form)."""
    if distribution == "gumbel_sigmoid":
        return torch.sigmoid(logits)
    return torch.sigmoid(logits - temperature * float(np.log(-_GAMMA / _ZETA)))


def _stretched(soft: Tensor) -> Tensor:
    return (soft * (_ZETA - _GAMMA) + _GAMMA).clamp(0.0, 1.0)


def _straight_through(soft: Tensor) -> Tensor:
    return (soft > 0.5).to(soft) + (soft - soft.detach())
