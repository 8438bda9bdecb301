"""Gate files: sealed safetensors with everything that was learned and chosen."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from sparsebert.errors import FileError, GateError, PatternError
from sparsebert.files import open_sealed_tensors, read_bytes, seal_tensors, write_atomic
from sparsebert.gates.gate import Gate
from sparsebert.gates.schedules import Schedule
from sparsebert.gates.structured import Structured
from sparsebert.gates.unstructured import Soft, Unstructured
from sparsebert.patterns import Pattern

FORMAT = 1
_STARTS, _KEYS = "inside.row_starts", "inside.keys"  # of the pattern that the gate is learned inside of, if any
# Gates that can be saved, by the name that files know them by.
KINDS: dict[str, Callable[..., Gate]] = {
    "structured": Structured,
    "unstructured": Unstructured,
    "soft": Soft,
}


def save(gate: Gate, path: str | Path) -> None:
    """A sealed file; equal gates give equal bytes."""
    about = {"kind": "gate", "format": FORMAT, **_as_before(_choices(gate)), "steps": gate.steps}
    tensors = {name: tensor.detach().cpu().numpy() for name, tensor in gate.state_dict().items()}
    if gate.inside is not None:
        layers = {"layers": gate.inside.layers} if gate.inside.layers > 1 else {}
        about["inside"] = {"heads": gate.inside.heads, "rule": gate.inside.rule, **layers}
        tensors |= {_STARTS: gate.inside.row_starts, _KEYS: gate.inside.keys}
    write_atomic(Path(path), seal_tensors(tensors, about))


def load(path: str | Path) -> Gate:
    """The gate of a file, as it was saved."""
    path = Path(path)
    tensors, about = open_sealed_tensors(read_bytes(path), path)
    if about.get("kind") != "gate" or about.get("format") != FORMAT:
        raise FileError(
            f"{path} holds a {about.get('kind')!r} of format {about.get('format')!r}; "
            f"expected a gate of format {FORMAT}, such as gate.safetensors of a run folder"
        )
    try:
        gate = _rebuilt(about)
        gate.restrict(_pattern_inside(about, tensors))
        gate.load_state_dict({name: torch.from_numpy(array.copy()) for name, array in tensors.items()})
    except (KeyError, TypeError, ValueError, RuntimeError, GateError, PatternError) as error:
        raise FileError(f"{path} cannot be rebuilt as a gate: {error}") from error
    return gate


def load_into(gate: Gate, path: str | Path) -> None:
    """Go on with the gate of a file in place of one that was made alike."""
    found = load(path)
    theirs, ours = _choices(found), _choices(gate)
    different = [name for name in ours if theirs[name] != ours[name]]
    if different:
        wanted = ", ".join(f"{name} {theirs[name]!r}" for name in different)
        raise GateError(f"the gate of {path} was made with other choices; make the one to go on with {wanted}")
    gate.load_state_dict(found.state_dict())
    gate.steps = found.steps
    gate.restrict(found.inside)


def _choices(gate: Gate) -> dict[str, Any]:
    """What a gate was made with."""
    return {
        "gate": next(name for name, cls in KINDS.items() if type(gate) is cls),
        "length": gate.length,
        "heads": gate.heads,
        "layers": gate.layers,
        "anchor": gate.anchor,
        "sparsity": gate.sparsity,
        "penalty": gate.penalty_weight,
        "settings": asdict(gate.settings),
    }


_LATER = {"learned_border", "directed"}  # settings that are off unless a gate was made with them


def _as_before(choices: dict[str, Any]) -> dict[str, Any]:
    """Without what came later and is not used: equal gates give the bytes that they always gave."""
    settings = {name: value for name, value in choices["settings"].items() if name not in _LATER or value}
    return {name: one for name, one in choices.items() if name != "layers" or one > 1} | {"settings": settings}


def _pattern_inside(about: dict[str, Any], tensors: dict[str, np.ndarray]) -> Pattern | None:
    """Takes the tensors of the pattern out of those of the file."""
    if "inside" not in about:
        return None
    heads, rule = int(about["inside"]["heads"]), about["inside"]["rule"]
    layers = int(about["inside"].get("layers", 1))
    starts, keys = tensors.pop(_STARTS), tensors.pop(_KEYS)
    return Pattern(heads, int(about["length"]), starts, keys, about["anchor"], rule, layers=layers)


def _rebuilt(about: dict[str, Any]) -> Gate:
    settings = dict(about["settings"])
    settings["temperature"] = Schedule(**settings["temperature"])
    names = ("length", "heads", "anchor", "sparsity", "penalty", "steps")
    # Files of earlier versions know one layer only.
    return KINDS[about["gate"]](**{name: about[name] for name in names}, layers=about.get("layers", 1), **settings)
