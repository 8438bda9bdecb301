"""Learning rates as pure functions of the step: nothing to save, nothing to restore."""

from collections.abc import Iterable
from typing import Any, Literal

from torch import nn

Schedule = Literal["linear", "constant"]


def rate_factor(step: int, num_steps: int, warmup_steps: int, schedule: Schedule) -> float:
    """What the peak rate is multiplied by at a step counted from 0: a linear rise, then a linear fall or none.

    The first step already moves and so does the last: (step + 1) / warmup on the way up, (num_steps - step) /
    (num_steps - warmup) on the way down.
    """
    if step < warmup_steps:
        return (step + 1) / warmup_steps
    if schedule == "constant":
        return 1.0
    return (num_steps - step) / (num_steps - warmup_steps)


def weight_groups(
    modules: nn.Module | Iterable[tuple[str, nn.Parameter]], learning_rate: float, weight_decay: float
) -> list[dict[str, Any]]:
    """BERT's two parameter groups: matrices decay; biases and normalisation (one-dimensional) do not."""
    named = modules.named_parameters() if isinstance(modules, nn.Module) else modules
    parameters = [parameter for _, parameter in named if parameter.requires_grad]
    return [
        {"params": [p for p in parameters if p.ndim > 1], "lr": learning_rate, "weight_decay": weight_decay},
        {"params": [p for p in parameters if p.ndim <= 1], "lr": learning_rate, "weight_decay": 0.0},
    ]
