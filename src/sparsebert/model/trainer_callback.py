"""Learn a gate inside transformers' Trainer: one callback, the Trainer's own loop untouched."""

from typing import Any

import torch
from transformers import TrainerCallback

from sparsebert.gates import Gate
from sparsebert.model.attachment import attach, detach


class GateCallback(TrainerCallback):
    """Attaches the gate, adds its penalty once per optimiser step, and moves it with an optimiser of its own.

    Trainer(..., callbacks=[GateCallback(gate)]); after train() call gate.freeze(). The gate's schedule is set to the
    Trainer's number of steps. Its state is not part of the Trainer's checkpoints: save it with gates.save.
    """

    def __init__(self, gate: Gate) -> None:
        self.gate = gate
        self.optimiser: torch.optim.Optimizer | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.gate.steps = max(int(state.max_steps), 1)
        attach(kwargs["model"], self.gate.to(args.device))
        groups = self.gate.parameter_groups(args.learning_rate)
        plain = [{name: group[name] for name in ("params", "lr", "weight_decay")} for group in groups]
        self.optimiser = torch.optim.AdamW(plain)

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        assert self.optimiser is not None
        self.optimiser.zero_grad(set_to_none=True)
        self.gate.resample(args.seed, state.global_step)

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        assert self.optimiser is not None
        self.gate.forget()
        penalty = self.gate.penalty()
        if penalty.requires_grad:
            penalty.backward()
        self.optimiser.step()
        self.gate.after_step(state.global_step)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        detach(kwargs["model"])
