"""Learning a gate beside the weights (Algorithm 1), on one level or two."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sparsebert import gates
from sparsebert.batches import PretrainingBatch
from sparsebert.gates import Diagonal, Gate
from sparsebert.model import attach, detach, running
from sparsebert.patterns import Pattern
from sparsebert.training.objective import Losses, Objective
from sparsebert.training.pretraining import BatchParts, BatchSource, PretrainingObjective


class SearchObjective(Objective):
    """Pre-training under a gate: one sample a step, shared by all layers, sequences, micro-batches and ranks.

    gate_batches: None for one level, weights and alpha moved by the same loss; else two levels (first-order DARTS),
    alpha moved by the loss on these batches, the weights by the loss on theirs.
    """

    def __init__(
        self,
        pretraining: PretrainingObjective,
        gate: Gate,
        *,
        seed: int,
        gate_batches: BatchParts | None = None,
        diagonal: Diagonal = "learned",
    ) -> None:
        super().__init__()
        self.pretraining, self.gate, self.seed, self.diagonal = pretraining, gate, seed, diagonal
        self.gate_batches = gate_batches
        self._gate_sources: dict[int, BatchSource] = {}
        attach(pretraining.model, gate, inside=False)

    def forward(self, step: int, micro: int) -> Losses:
        self.pretraining.micro_batches = self.micro_batches
        batch, predicted = self.pretraining.part(step, micro)
        self.gate.resample(self.seed, step)
        if self.gate_batches is None:
            losses = self.pretraining.losses(batch, predicted)
            total = losses.total
        else:
            losses, total = self._two_levels(batch, predicted, step, micro)
        penalty = self.gate.penalty()
        figures: dict[str, Tensor | float] = {
            "penalty": penalty.detach(),
            "sparsity": 1.0 - float(self.gate.expected_density().detach()),
        }
        if self.gate.sparsity is not None:
            figures["lambda"] = float(self.gate.dual)
        return Losses(total + penalty, {**losses.parts, **figures}, losses.tokens)

    def _two_levels(self, batch: PretrainingBatch, predicted: float, step: int, micro: int) -> tuple[Losses, Tensor]:
        self.gate.requires_grad_(False)
        losses = self.pretraining.losses(batch, predicted)
        self.gate.requires_grad_(True)
        other = self._gate_source(micro).batch(step)
        self.gate.resample(self.seed, step)
        gate_loss = self.pretraining.losses(other, max(len(other.predicted_ids), 1)).total
        parameters = list(self.gate.parameters())
        gradients = torch.autograd.grad(gate_loss, parameters)
        self.gate.forget()
        # A term whose value is zero and whose gradient is alpha's own, so that one backward pass serves both levels.
        terms = [((p - p.detach()) * g).sum() for p, g in zip(parameters, gradients, strict=True)]
        return losses, losses.total + torch.stack(terms).sum()

    def _gate_source(self, micro: int) -> BatchSource:
        assert self.gate_batches is not None
        if micro not in self._gate_sources:
            self._gate_sources[micro] = self.gate_batches(micro, self.micro_batches)
        return self._gate_sources[micro]

    def parameter_groups(self) -> list[dict[str, Any]]:
        return [
            *self.pretraining.parameter_groups(),
            *self.gate.parameter_groups(self.pretraining.learning_rate),
        ]

    def after_step(self, step: int) -> None:
        self.gate.after_step(step)

    def frozen(self) -> Pattern:
        return self.gate.freeze(self.gate.sparsity, diagonal=self.diagonal)

    def evaluate(self, step: int) -> dict[str, float]:
        """Held-out figures under the pattern that freezing would give now."""
        pattern = self.frozen()
        with running(self.pretraining.model, pattern):
            return {**self.pretraining.evaluate(step), "frozen_sparsity": pattern.sparsity}

    def finish(self, folder: Path) -> dict[str, Any]:
        """Freeze the gate into the model's pattern, and save gate, pattern and model."""
        pattern = self.frozen()
        gates.save(self.gate, folder / "gate.safetensors")
        expected = 1.0 - float(self.gate.expected_density().detach())
        detach(self.pretraining.model).set_pattern(pattern)
        return {**self.pretraining.finish(folder), "task": "search", "expected_sparsity": expected, **summary(pattern)}


def summary(pattern: Pattern) -> dict[str, Any]:
    """What a learned pattern keeps, head by head, off the border."""
    return {
        "sparsity": pattern.sparsity,
        "sparsity_of_heads": [1.0 - len(pattern.entries(head)) / pattern.length**2 for head in range(pattern.heads)],
        "heads_with_diagonal": _share_of_heads(pattern, 0),
        "heads_with_neighbours": _share_of_heads(pattern, 1),
    }


def _share_of_heads(pattern: Pattern, distance: int) -> float:
    """The share of heads that keep most of a line."""
    n = pattern.length
    rows = np.arange(1, n - 1 - distance)
    line = rows * n + rows + distance
    return float(np.mean([np.isin(line, pattern.entries(head)).mean() > 0.5 for head in range(pattern.heads)]))
