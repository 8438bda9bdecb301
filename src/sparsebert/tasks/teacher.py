"""A dense model that was fine-tuned on a task teaches a sparse one: its answers, and the states they come from."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from sparsebert.tasks.encoding.sequences import Batch
from sparsebert.tasks.heads import run_head_and_layers
from sparsebert.tasks.table import Kind
from sparsebert.training.fidelity import States, hidden_errors


class TaskTeacher:
    """Not a module: what does not change is no part of a checkpoint."""

    def __init__(self, model: Any, kind: Kind, each: int) -> None:
        """model: dense, with the task's head. each: sequences of an item."""
        self.model, self.kind, self.each = model.requires_grad_(False).eval(), kind, each

    def losses(
        self, scores: Float[Tensor, "items ..."], layers: Sequence[Tensor], batch: Batch
    ) -> Float[Tensor, " items"]:
        """How far a student is from the teacher on each item: in its answers and in the states of every layer."""
        if next(self.model.parameters()).device != scores.device:
            self.model.to(scores.device)
        with torch.no_grad():
            wanted, taught = run_head_and_layers(self.model, self.kind, batch, self.each)
        return self._answers(scores, wanted, batch) + self._states(layers, taught, batch)

    def _answers(self, scores: Tensor, wanted: Tensor, batch: Batch) -> Float[Tensor, " items"]:
        if self.kind == "regression":
            return (scores - wanted).square()
        if self.kind == "span":
            # Padding is no place to answer from.
            lowest = torch.finfo(scores.dtype).min
            real = batch.padding().bool()[:, :, None]
            scores, wanted = (one.masked_fill(~real, lowest).transpose(1, 2) for one in (scores, wanted))
        ours, theirs = F.log_softmax(scores.float(), dim=-1), F.log_softmax(wanted.float(), dim=-1)
        distance = (theirs.exp() * (theirs - ours)).sum(-1)
        return distance.flatten(1).mean(1) if self.kind == "span" else distance

    def _states(self, layers: Sequence[Tensor], taught: Sequence[Tensor], batch: Batch) -> Float[Tensor, " items"]:
        """Relative errors; the last layer of either may have gone on with its first token alone."""
        real = batch.padding().float()
        errors = []
        for ours, theirs in zip(layers[1:], taught[1:], strict=True):
            places = slice(min(ours.shape[1], theirs.shape[1]))
            pair = (States((one, one[:, places]), real[:, places]) for one in (ours, theirs))
            errors.append(hidden_errors(*pair))
        return torch.stack(errors).mean((0, 1)).view(-1, self.each).mean(1)
