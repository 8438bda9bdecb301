"""What fit() trains: everything with parameters, and how it makes a loss of a step number."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn


@dataclass(frozen=True)
class Losses:
    """What one micro-batch gives: fit() takes the mean of each over the micro-batches of a step, and adds tokens."""

    total: Float[Tensor, ""]  # what is minimised
    parts: Mapping[str, Tensor | float] = field(default_factory=dict)  # what metrics.jsonl shows beside it
    tokens: int = 0  # real tokens seen


class Objective(nn.Module):
    """A loss with its parameters. Whatever must survive a restart is a parameter or a persistent buffer of it.

    Steps are counted from 0 in forward() and after_step(); evaluate() is told how many steps are done. Every draw is
    keyed by the step (and the micro-batch where micro-batches should differ), never taken from a moving state.
    Gradients are averaged over micro-batches and ranks by fit(), so a penalty added to every total counts once.
    """

    # Set by fit(): the parts a step's batch is cut into, over all ranks together. `micro` runs from 0 to this.
    micro_batches: int = 1
    model: Any  # whose weights are learned; asked for by whoever learns a gate beside them
    learning_rate: float  # of the weights, at its peak

    def forward(self, step: int, micro: int) -> Losses:
        """The losses of part `micro` of the step's batch; the same on whichever rank it is computed.

        Draws that all parts must share (a gate's noise) are keyed by the step alone.
        """
        raise NotImplementedError

    def parameter_groups(self) -> list[dict[str, Any]]:
        """AdamW's groups, each with its own peak `lr` and `weight_decay`.

        A group may say "schedule": "constant" (after warm-up), and "clip": False to stand apart from clipping.
        """
        raise NotImplementedError

    def after_step(self, step: int) -> None:
        """Called on every rank after an update; not after a step that was skipped."""

    def evaluate(self, step: int) -> dict[str, float]:
        """Figures after `step` steps, in eval mode, without gradients, on rank 0 alone: no collectives in here."""
        return {}

    def finish(self, folder: Path) -> dict[str, Any]:
        """Write what the run was for, on rank 0; may be called again after a kill. Returns fields of result.json.

        Where they name a `metric` of the last evaluation and no `score`, fit() adds it.
        """
        return {}

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device


class Wrapper(Objective):
    """An objective around another one: what a wrapper does not change is the inner objective's own.

    Wrappers nest in any order that makes sense, and add no names to a checkpoint: an inner tensor is called what it is
    called without them.
    """

    def __init__(self, inner: Objective) -> None:
        super().__init__()
        self.inner = inner

    @property
    def micro_batches(self) -> int:
        return self.inner.micro_batches

    @micro_batches.setter
    def micro_batches(self, parts: int) -> None:
        self.inner.micro_batches = parts

    @property
    def model(self) -> Any:
        return self.inner.model

    @property
    def learning_rate(self) -> float:  # type: ignore[override]
        return self.inner.learning_rate

    def forward(self, step: int, micro: int) -> Losses:
        losses: Losses = self.inner(step, micro)
        return losses

    def parameter_groups(self) -> list[dict[str, Any]]:
        return self.inner.parameter_groups()

    def after_step(self, step: int) -> None:
        self.inner.after_step(step)

    def evaluate(self, step: int) -> dict[str, float]:
        return self.inner.evaluate(step)

    def finish(self, folder: Path) -> dict[str, Any]:
        return self.inner.finish(folder)
