"""Where alpha starts."""

import math

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from sparsebert import draws
from sparsebert.gates.settings import Settings

_HALVINGS = 100  # of the interval in which the centre lies: more than float64 has digits


def initial_logits(
    heads: int,
    sizes: Int64[np.ndarray, " units"],
    distances: Int64[np.ndarray, " units"],
    settings: Settings,
    seed: int,
) -> Float[Tensor, "heads units"]:
    """The log-odds of the initial density, lower for what is far, and a little noise where the preset asks for it.

    sizes: entries of each unit. distances: between a query and the keys of a unit.
    """
    centre = math.log(settings.initial_density) - math.log1p(-settings.initial_density)
    logits = torch.full((heads, len(sizes)), centre)
    if settings.initial_slope > 0:
        lower = settings.initial_slope * np.log2(1.0 + distances)
        logits += torch.from_numpy(_raised(lower, sizes, settings.initial_density) - lower - centre).float()
    if settings.initial_noise > 0:
        noise = draws.generator(seed, "gates/start").standard_normal((heads, len(sizes)))
        logits += settings.initial_noise * torch.from_numpy(noise).float()
    return logits


def _raised(lower: Float[np.ndarray, " units"], sizes: Int64[np.ndarray, " units"], density: float) -> float:
    """How much higher all log-odds begin, so that this share of the entries is expected."""
    low, high = -40.0, 40.0 + float(lower.max(initial=0.0))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        share = (sizes / (1.0 + np.exp(lower - middle))).sum() / sizes.sum()
        low, high = (middle, high) if share < density else (low, middle)
    return (low + high) / 2
