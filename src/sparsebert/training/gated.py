"""Learning a gate beside the weights (Algorithm 1), whatever the loss: on one level or two, and how it ends."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sparsebert import gates
from sparsebert.gates import Diagonal, Gate, Structured
from sparsebert.model import attach, detach, running
from sparsebert.model.heads import give_pattern
from sparsebert.patterns import Pattern
from sparsebert.patterns.entries import Entries
from sparsebert.training.objective import Losses, Objective, Wrapper


class Gated(Wrapper):
    """Any objective under a gate: one sample a step, shared by all layers, sequences, micro-batches and ranks.

    second: None for one level, weights and alpha moved by the same loss; else two levels (first-order DARTS): an
    objective of the same model on batches of its own, whose loss moves alpha while the inner one's moves the weights.
    from_step: the step from which on the gate learns. Before it the gate stays as it began, so that the weights know
    something by then: what a gate learns under heads that know nothing is noise.
    """

    def __init__(
        self, inner: Objective, gate: Gate, *, seed: int, second: Objective | None = None, from_step: int = 0
    ) -> None:
        super().__init__(inner)
        self.gate, self.seed, self.from_step = gate, seed, from_step
        # In a list, where torch does not look: its weights are the inner objective's, which a checkpoint holds once.
        self._second = [] if second is None else [second]
        attach(inner.model, gate, inside=False)
        gate.holds_sample = True  # an objective may run a step's rows in several forwards

    def forward(self, step: int, micro: int) -> Losses:
        self.gate.requires_grad_(step >= self.from_step and not self._second)
        self.gate.resample(self.seed, step)
        losses: Losses = self.inner(step, micro)
        total = losses.total
        for second in self._second:
            total = total + self._own_term(second, step, micro)
        if not self._is_led:
            return Losses(total, losses.parts, losses.tokens)
        penalty = self.gate.penalty()
        # A loss that is one number is shown beside the penalty, a loss of several parts by its parts.
        parts = dict(losses.parts) or {"task": losses.total.detach()}
        with torch.no_grad():
            parts |= {"penalty": penalty.detach(), "sparsity": 1.0 - float(self.gate.expected_density())}
        if self.gate.sparsity is not None:
            parts["lambda"] = float(self.gate.dual)
        return Losses(total + penalty, parts, losses.tokens)

    @property
    def _is_led(self) -> bool:
        """Whether anything draws the gate towards fewer entries."""
        return self.gate.sparsity is not None or self.gate.penalty_weight > 0

    def _own_term(self, second: Objective, step: int, micro: int) -> Tensor:
        """A term whose value is zero and whose gradient is alpha's own: one backward pass then serves both levels."""
        self.gate.requires_grad_(True)
        self.gate.resample(self.seed, step)
        second.micro_batches = self.micro_batches
        parameters = list(self.gate.parameters())
        gradients = torch.autograd.grad(second(step, micro).total, parameters)
        self.gate.forget()
        return torch.stack([((p - p.detach()) * g).sum() for p, g in zip(parameters, gradients, strict=True)]).sum()

    def parameter_groups(self) -> list[dict[str, Any]]:
        return [*self.inner.parameter_groups(), *self.gate.parameter_groups(self.learning_rate)]

    def after_step(self, step: int) -> None:
        self.inner.after_step(step)
        if self._is_led:
            self.gate.after_step(step)


class Frozen(Wrapper):
    """A search: judged under the pattern that freezing would give now, and ended by freezing it into the model."""

    inner: Gated

    def __init__(
        self,
        inner: Gated,
        *,
        diagonal: Diagonal = "learned",
        assured: float = 0.5,
        ranked: bool = False,  # the pattern of a structured gate carries the order of its units
        longest: int
        | None = None,  # where a ranked pattern is to have the gate's keys a query; None: the gate's length
        also_at: Sequence[float] = (),  # sparsities that the same ranking is judged at in the end
    ) -> None:
        super().__init__(inner)
        self.diagonal, self.assured, self.ranked, self.also_at = diagonal, assured, ranked, also_at
        self.longest = longest

    def pattern(self) -> Pattern:
        gate = self.inner.gate
        # The draw of the last step, named by what a checkpoint holds: a resumed run freezes the same one.
        gate.drawn_at = (self.inner.seed, max(int(gate.step) - 1, 0), 0)
        pattern = gate.freeze(gate.sparsity, diagonal=self.diagonal, assured=self.assured)
        if not (self.ranked and isinstance(gate, Structured)):
            return pattern
        pattern = replace(pattern, ranking=gate.ranking())
        # What the ranking itself gives: every other sparsity that is picked from it is then nested with this one.
        if gate.sparsity is None:
            return pattern
        if self.longest is None:
            return pattern.at_sparsity(gate.sparsity)
        keys = (1.0 - gate.sparsity) * gate.length
        return pattern.at(self.longest).at_sparsity(1.0 - keys / self.longest)

    def evaluate(self, step: int) -> dict[str, float]:
        pattern = self.pattern()
        with running(self.model, pattern):
            return {**self.inner.evaluate(step), "frozen_sparsity": pattern.sparsity}

    def finish(self, folder: Path) -> dict[str, Any]:
        """Freeze the gate into the model's pattern, and save gate, pattern and whatever the inner objective saves."""
        gate, pattern = self.inner.gate, self.pattern()
        gates.save(gate, folder / "gate.safetensors")
        expected = 1.0 - float(gate.expected_density().detach())
        gate.warn_if_cut()
        give_pattern(detach(self.model), pattern)
        found = {**self.inner.finish(folder), "expected_sparsity": expected, **summary(pattern)}
        if self.also_at:
            found["at_sparsities"] = [self._judged(pattern.at_sparsity(sparsity)) for sparsity in self.also_at]
        return found

    @torch.no_grad()
    def _judged(self, pattern: Pattern) -> dict[str, float]:
        with running(self.model, pattern):
            return {"sparsity": pattern.sparsity, **self.inner.evaluate(-1)}


def summary(pattern: Pattern) -> dict[str, Any]:
    """What a learned pattern keeps, head by head (of every layer, if it has several), off the border."""
    of_heads = [1.0 - len(entries) / pattern.length**2 for _, _, entries in pattern.each_head()]
    of_layers = [of_heads[start : start + pattern.heads] for start in range(0, len(of_heads), pattern.heads)]
    return {
        "sparsity": pattern.sparsity,
        "sparsity_of_heads": of_heads if pattern.layers == 1 else of_layers,
        "heads_with_diagonal": _share_of_heads(pattern, 0),
        "heads_with_neighbours": _share_of_heads(pattern, 1),
    }


def _share_of_heads(pattern: Pattern, distance: int) -> float:
    """The share of heads that keep most of a line, ahead or back."""
    n = pattern.length
    rows = np.arange(1, n - 1 - distance)
    lines = rows * n + rows + distance, (rows + distance) * n + rows

    def keeps(entries: Entries) -> bool:
        return any(np.isin(line, entries).mean() > 0.5 for line in lines)

    return float(np.mean([keeps(entries) for _, _, entries in pattern.each_head()]))
