"""What a pre-training run costs: floating-point operations, counted from the shapes of its matrices."""

import time
from dataclasses import dataclass
from typing import Any

_PREDICTED = 0.15  # share of the tokens that are predicted
_TRAINING_PASSES = 3  # the backward pass costs twice the forward pass
_SECONDS_PER_DAY = 86_400.0


@dataclass(frozen=True)
class Cost:
    """Of a whole run."""

    num_steps: int
    tokens: float
    flops: float  # floating-point operations of all steps; a multiply-add counts as two
    flops_per_second: float  # of all devices together, sustained in training
    density: float  # share of the attention entries that is computed

    @property
    def days(self) -> float:
        return self.flops / self.flops_per_second / _SECONDS_PER_DAY


def flops_per_token(shape: dict[str, Any], vocab_size: int, length: int, density: float = 1.0) -> float:
    """Operations of one training step for each token of a batch.

    A layer's products cost 2 (4 d² + 2 d f), its attention 4 n d density, for width d, inner width f and length n;
    the head costs 2 (d² + d v) at each predicted position, for v words. Norms, activations and the optimiser, which
    together stay small beside the products, are left out.
    """
    width, inner = int(shape["hidden_size"]), int(shape["intermediate_size"])
    layer = 2 * (4 * width**2 + 2 * width * inner) + 4 * length * width * density
    head = _PREDICTED * 2 * (width**2 + width * vocab_size)
    return _TRAINING_PASSES * (int(shape["num_hidden_layers"]) * layer + head)


def cost_of(
    shape: dict[str, Any],
    *,
    vocab_size: int,
    length: int,
    batch_size: int,
    num_steps: int,
    flops_per_second: float,
    density: float = 1.0,
) -> Cost:
    """The cost of a run; shape: hidden_size, intermediate_size and num_hidden_layers, as in a BERT configuration."""
    tokens = float(num_steps) * batch_size * length
    flops = tokens * flops_per_token(shape, vocab_size, length, density)
    return Cost(num_steps, tokens, flops, flops_per_second, density)


def measured_flops(seconds: float = 0.5) -> float:
    """What matrix products sustain on this machine, per second: an upper bound for training."""
    import torch

    size = 1024
    left, right = torch.randn(size, size), torch.randn(size, size)
    left @ right
    started, count = time.perf_counter(), 0
    while time.perf_counter() - started < seconds:
        left @ right
        count += 1
    return count * 2 * size**3 / (time.perf_counter() - started)
