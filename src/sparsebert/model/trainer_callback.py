"""Learn a gate inside transformers' Trainer: one callback, the Trainer's own loop untouched."""

from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import TrainerCallback

from sparsebert import gates
from sparsebert.errors import FileError, GateError
from sparsebert.files import open_sealed_tensors, read_bytes, seal_tensors, write_atomic
from sparsebert.gates import Gate
from sparsebert.model.attachment import attach, detach
from sparsebert.model.fingerprint import short_fingerprint

# Beside the Trainer's own files in each of its checkpoints.
GATE, OPTIMISER = "gate.safetensors", "gate_optimiser.safetensors"


class GateCallback(TrainerCallback):
    """Attaches the gate, adds its penalty once per optimiser step, and moves it with an optimiser of its own.

    Trainer(..., callbacks=[GateCallback(gate)]); after train() call gate.freeze(). The gate's schedule is set to the
    Trainer's number of steps. Gate and optimiser are part of each checkpoint: train(resume_from_checkpoint=...) goes
    on with the gate of that checkpoint, or refuses. inside: as of attach(), for a model that has a pattern.
    resume_from: the checkpoint's folder, where it is not one of the Trainer's output_dir.
    """

    def __init__(self, gate: Gate, *, inside: bool | None = None, resume_from: str | Path | None = None) -> None:
        self.gate, self.inside, self.resume_from = gate, inside, resume_from
        self.optimiser: torch.optim.Optimizer | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.gate.to(args.device)
        groups = self.gate.parameter_groups(args.learning_rate)
        plain = [{name: group[name] for name in ("params", "lr", "weight_decay")} for group in groups]
        self.optimiser = torch.optim.AdamW(plain)
        if state.global_step > 0:
            _restore(self._folder(args, state), self.gate, self.optimiser, kwargs["model"])
        attach(kwargs["model"], self.gate, inside=self.inside)
        self.gate.steps = max(int(state.max_steps), 1)

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

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        assert self.optimiser is not None
        if args.should_save:
            _save(_checkpoint(args, state), self.gate, self.optimiser, kwargs["model"])

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        detach(kwargs["model"])
        if args.load_best_model_at_end and state.best_model_checkpoint is not None:
            gates.load_into(self.gate, Path(state.best_model_checkpoint) / GATE)  # that of the weights just loaded

    def _folder(self, args: Any, state: Any) -> Path:
        """Where the gate of the checkpoint lies; the Trainer does not tell a callback what it resumes from."""
        asked = self.resume_from or args.resume_from_checkpoint
        folders = [Path(asked)] if isinstance(asked, str | Path) else []
        folders += [] if self.resume_from else [_checkpoint(args, state)]
        for folder in folders:
            if (folder / GATE).is_file():
                return folder
        raise GateError(
            f"the Trainer resumes at step {state.global_step} but {folders[0]} holds no {GATE}; resume from a "
            "checkpoint written with GateCallback, name its folder with GateCallback(gate, resume_from=...), or start "
            "anew"
        )


def _checkpoint(args: Any, state: Any) -> Path:
    return Path(args.output_dir) / f"checkpoint-{state.global_step}"


def _save(folder: Path, gate: Gate, optimiser: torch.optim.Optimizer, model: nn.Module) -> None:
    if not folder.is_dir():
        raise GateError(f"the Trainer wrote no {folder} for the gate to be saved in; a search over settings has none")
    tensors = {
        f"{place}.{name}": value.detach().cpu().numpy()
        for place, state in optimiser.state_dict()["state"].items()
        for name, value in state.items()
    }
    about = {"kind": "gate optimiser", "format": 1, "weights": short_fingerprint(model)}
    write_atomic(folder / OPTIMISER, seal_tensors(tensors, about))
    gates.save(gate, folder / GATE)


def _restore(folder: Path, gate: Gate, optimiser: torch.optim.Optimizer, model: nn.Module) -> None:
    tensors, about = open_sealed_tensors(read_bytes(folder / OPTIMISER), folder / OPTIMISER)
    if about.get("kind") != "gate optimiser" or about.get("format") != 1:
        raise FileError(f"{folder / OPTIMISER} holds no optimiser of a gate; restore the checkpoint from a copy")
    if about.get("weights") != short_fingerprint(model):
        raise GateError(
            f"the gate of {folder} was saved with other weights than those the Trainer resumes from; name the folder "
            "of the checkpoint with GateCallback(gate, resume_from=...)"
        )
    gates.load_into(gate, folder / GATE)
    state: dict[int, dict[str, torch.Tensor]] = {}
    for place, array in tensors.items():
        number, name = place.split(".")
        state.setdefault(int(number), {})[name] = torch.from_numpy(array.copy())
    optimiser.load_state_dict({"state": state, "param_groups": optimiser.state_dict()["param_groups"]})
