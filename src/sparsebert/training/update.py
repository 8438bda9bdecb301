"""One optimiser step: micro-batches, gradients summed over the ranks, clipping, AdamW."""

import contextlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grads_with_norm_, get_total_norm

from sparsebert import draws
from sparsebert.errors import ConfigError, TrainingError
from sparsebert.training.config import FitConfig
from sparsebert.training.launch import Ranks
from sparsebert.training.objective import Losses, Objective
from sparsebert.training.row_gradients import RowGradients
from sparsebert.training.schedules import rate_factor
from sparsebert.training.signals import WATCHED, Received


@dataclass(frozen=True)
class StepReport:
    """What a step came to; the same on every rank."""

    loss: float
    parts: dict[str, float]
    tokens: int
    grad_norm: float
    rate: float  # of the first parameter group
    skipped: bool  # something was not finite, so nothing was updated
    signal: int  # a rank was asked to stop; 0: none was

    def as_line(self, step: int) -> dict[str, Any]:
        """A line of metrics.jsonl, with every digit; null where a value is not finite."""
        values = {"loss": self.loss, **self.parts, "grad_norm": self.grad_norm, "lr": self.rate}
        line = {name: value if math.isfinite(value) else None for name, value in values.items()}
        return {"step": step, **line, "tokens": self.tokens} | ({"skipped": True} if self.skipped else {})


class Updater:
    """An objective and its optimiser, moved one step at a time."""

    def __init__(self, objective: Objective, config: FitConfig, ranks: Ranks) -> None:
        self.objective, self.config, self.ranks = objective, config, ranks
        groups = [{**group, "peak": group["lr"]} for group in objective.parameter_groups() if group["params"]]
        if not groups:
            raise ConfigError("the objective has no parameters to train; at least one parameter group is needed")
        self.optimiser = torch.optim.AdamW(groups, betas=config.betas, eps=config.epsilon, fused=True)
        self.parameters: list[nn.Parameter] = [p for group in groups for p in group["params"]]
        self.tables = RowGradients(objective)

    def step(self, step: int, received: Received) -> StepReport:
        """Compute step number `step`, counted from 0."""
        self.optimiser.zero_grad(set_to_none=True)
        self.tables.begin()
        losses = [self._micro_batch(step, micro) for micro in self.ranks.share(self.config.micro_batches)]
        self.tables.give()
        numbers, names = self._exchange(losses, received)
        loss, tokens, *means = numbers[: 2 + len(names)]
        terms, interrupts, *used = numbers[2 + len(names) :]
        self.ranks.sum_gradients([p for p, uses in zip(self.parameters, used, strict=True) if uses])
        norm, all_finite = self._clip()
        skipped = not (math.isfinite(loss) and all_finite)
        rate = self._set_rates(step)
        if not skipped:
            self.optimiser.step()
            self.objective.after_step(step)
        parts = dict(zip(names, means, strict=True))
        signal = WATCHED[0] if terms else WATCHED[1] if interrupts else 0
        return StepReport(loss, parts, int(tokens), norm, rate, skipped, signal)

    def _micro_batch(self, step: int, micro: int) -> Losses:
        # Dropout is a function of the step and the part of its batch, on whichever rank that is computed.
        torch.manual_seed(draws.seed_for(self.config.seed, "training/dropout", step, micro))
        with self.tables.gathered():
            with self._autocast():
                losses: Losses = self.objective(step, micro)
            (losses.total.float() / self.config.micro_batches).backward()  # type: ignore[no-untyped-call]
        return Losses(losses.total.detach(), losses.parts, losses.tokens)

    def _autocast(self) -> contextlib.AbstractContextManager[Any]:
        if self.config.precision == "float32":
            return contextlib.nullcontext()
        return torch.autocast(self.ranks.device.type, torch.bfloat16)

    def _exchange(self, losses: Sequence[Losses], received: Received) -> tuple[list[float], list[str]]:
        """Means and sums over all micro-batches of all ranks, signals, and which parameters have a gradient."""
        names = list(losses[0].parts)
        if any(list(other.parts) != names for other in losses):
            raise TrainingError(f"micro-batches of one step report different parts, {names} and others")
        share = self.config.micro_batches
        means = [sum(float(one.total) for one in losses) / share]
        parts = [sum(_number(one.parts[name]) for one in losses) / share for name in names]
        signals = [float(received.number == number) for number in WATCHED]
        used = [float(parameter.grad is not None) for parameter in self.parameters]
        return self.ranks.sum([*means, sum(one.tokens for one in losses), *parts, *signals, *used]), names

    def _clip(self) -> tuple[float, bool]:
        """Clip the groups that want it, together; their norm before, and whether every gradient is finite."""
        groups = self.optimiser.param_groups
        clipped = [p for group in groups if group.get("clip", True) for p in group["params"] if p.grad is not None]
        others = [p for group in groups if not group.get("clip", True) for p in group["params"] if p.grad is not None]
        norm, rest = (float(get_total_norm([p.grad for p in some])) for some in (clipped, others))
        finite = math.isfinite(norm) and math.isfinite(rest)
        if finite and self.config.max_grad_norm:
            clip_grads_with_norm_(clipped, self.config.max_grad_norm, torch.tensor(norm, device=self.ranks.device))
        return norm, finite

    def _set_rates(self, step: int) -> float:
        config = self.config
        for group in self.optimiser.param_groups:
            schedule = group.get("schedule", config.schedule)
            group["lr"] = group["peak"] * rate_factor(step, config.num_steps, config.warmup_steps, schedule)
        return float(self.optimiser.param_groups[0]["lr"])


def _number(value: Tensor | float) -> float:
    return float(value.detach() if isinstance(value, Tensor) else value)
