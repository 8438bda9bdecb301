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
