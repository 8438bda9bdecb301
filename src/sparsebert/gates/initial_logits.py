"""Where alpha starts."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from sparsebert import draws
from sparsebert.gates.settings import Settings


def initial_logits(heads: int, units: int, settings: Settings, seed: int) -> Float[Tensor, "heads units"]:
    """The log-odds of the initial density, and a little noise where the preset asks for it."""
    centre = math.log(settings.initial_density) - math.log1p(-settings.initial_density)
    logits = torch.full((heads, units), centre)
    if settings.initial_noise > 0:
        noise = draws.generator(seed, "gates/start").standard_normal((heads, units))
        logits += settings.initial_noise * torch.from_numpy(noise).float()
    return logits
