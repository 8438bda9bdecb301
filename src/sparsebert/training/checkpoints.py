"""Checkpoints that are whole or absent: weights, optimiser and step, published as one verified folder."""

import json
import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_safetensors
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.optim import Optimizer

from sparsebert.errors import FileError, TrainingError
from sparsebert.files import (
    make_folder,
    publish_folder,
    remove_folder,
    require_space,
    sweep,
    verified_files,
    write_json,
)

logger = logging.getLogger(__name__)

_WEIGHTS, _OPTIMISER, _PROGRESS = "objective.safetensors", "optimiser.safetensors", "progress.json"
_NAME = re.compile("step-[0-9]{8,12}")
_SLACK = 2**20  # bytes beside the tensors: headers, manifest, the folder itself


@dataclass(frozen=True)
class RunState:
    """How far a run has come; all that is not a tensor."""

    step: int = 0  # steps done
    tokens: int = 0
    skipped: int = 0  # steps without an update, because something was not finite
    skipped_in_a_row: int = 0
    evaluation: Mapping[str, float | None] = field(default_factory=dict)  # the last one; None: not finite


class Checkpoints:
    """The folder `checkpoints/` of a run."""

    def __init__(self, folder: Path, keep: int) -> None:
        self.folder, self.keep = folder, keep

    def save(self, state: RunState, objective: nn.Module, optimiser: Optimizer) -> None:
        """Publish one, then remove those beyond the newest `keep`."""
        weights, moments = dict(_weights(objective)), dict(_moments(objective, optimiser))
        _require_finite(weights | moments, state.step)
        make_folder(self.folder)
        require_space(self.folder, _SLACK + sum(tensor.nbytes for tensor in [*weights.values(), *moments.values()]))

        def fill(folder: Path) -> None:
            try:
                save_file(_for_disk(weights), folder / _WEIGHTS)
                save_file(_for_disk(moments), folder / _OPTIMISER)
            except SafetensorError as error:  # what the library makes of a failed write
                raise FileError(f"cannot write the checkpoint of step {state.step}: {error}") from error
            write_json(folder / _PROGRESS, asdict(state))

        publish_folder(self.folder / f"step-{state.step:08d}", fill)
        self.rotate(self.keep)

    def rotate(self, keep: int) -> None:
        for folder in self._published()[keep:]:
            remove_folder(folder)

    def newest(self) -> int:
        """The step of the newest checkpoint that verifies, 0 where there is none; others are set aside, by name."""
        if self.folder.is_dir():
            sweep(self.folder)
        for folder in self._published():
            try:
                _read(folder)
            except (FileError, TrainingError) as error:
                logger.warning("checkpoint %s is refused: %s", folder.name, error)
                aside = folder.with_suffix(".refused")
                remove_folder(aside)
                folder.rename(aside)
            else:
                return _step_of(folder)
        return 0

    def load(self, step: int, objective: nn.Module, optimiser: Optimizer) -> RunState:
        """Put the run back to where it was after `step` steps, to the bit."""
        weights, moments, state = _read(self.folder / f"step-{step:08d}")
        _restore_weights(objective, weights)
        _restore_moments(objective, optimiser, moments)
        return state

    def _published(self) -> list[Path]:
        """Newest first."""
        names = [path for path in self.folder.glob("step-*") if _NAME.fullmatch(path.name)]
        return sorted(names, key=_step_of, reverse=True)


def _step_of(folder: Path) -> int:
    return int(folder.name.removeprefix("step-"))


def _read(folder: Path) -> tuple[dict[str, Tensor], dict[str, Tensor], RunState]:
    """Every byte of a checkpoint, verified before any of it is used."""
    found: dict[str, Any] = {}
    try:
        for name, contents in verified_files(folder):
            found[name] = load_safetensors(contents) if name.endswith(".safetensors") else json.loads(contents)
        return found[_WEIGHTS], found[_OPTIMISER], RunState(**found[_PROGRESS])
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise FileError(f"{folder} is not a checkpoint of this version of sparsebert ({error})") from error


def _weights(objective: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Parameters and persistent buffers; one that is known by two names (a tied head) comes once."""
    seen: set[int] = set()
    for name, tensor in objective.state_dict(keep_vars=True).items():
        if isinstance(tensor, Tensor) and id(tensor) not in seen:
            seen.add(id(tensor))
            yield _without_wrappers(name), tensor


def _moments(objective: nn.Module, optimiser: Optimizer) -> Iterator[tuple[str, Tensor]]:
    """What the optimiser knows of each parameter, by the parameter's name."""
    for name, parameter in _named_parameters(objective):
        for key, value in optimiser.state.get(parameter, {}).items():
            yield f"{key}/{name}", value


def _named_parameters(objective: nn.Module) -> Iterator[tuple[str, nn.Parameter]]:
    return ((_without_wrappers(name), parameter) for name, parameter in objective.named_parameters())


def _without_wrappers(name: str) -> str:
    """A tensor's name in the innermost objective, so that a checkpoint fits however a run is wrapped.

    "pretraining." is what earlier versions called the objective inside.
    """
    return re.sub(r"^(inner\.|pretraining\.)+", "", name)


def _for_disk(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}


def _require_finite(tensors: Mapping[str, Tensor], step: int) -> None:
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            raise TrainingError(
                f"{name} holds a value that is not finite after step {step}; no checkpoint was written, the last good "
                "one is kept: lower the learning rate, or clip more"
            )


@torch.no_grad()
def _restore_weights(objective: nn.Module, saved: Mapping[str, Tensor]) -> None:
    own, saved = dict(_weights(objective)), {_without_wrappers(name): tensor for name, tensor in saved.items()}
    odd = sorted(set(own) ^ set(saved)) or [name for name in own if own[name].shape != saved[name].shape]
    if odd:
        raise TrainingError(f"the checkpoint does not fit this objective, first at {odd[0]}; use another folder")
    for name, tensor in own.items():
        tensor.copy_(saved[name])


def _restore_moments(objective: nn.Module, optimiser: Optimizer, saved: Mapping[str, Tensor]) -> None:
    parameters = dict(_named_parameters(objective))
    state: dict[Tensor, dict[str, Any]] = {}
    for full_name, value in saved.items():
        key, name = full_name.split("/", 1)
        parameter = parameters[_without_wrappers(name)]
        state.setdefault(parameter, {})[key] = value.to(parameter.device)
    optimiser.state.clear()
    optimiser.state.update(state)
