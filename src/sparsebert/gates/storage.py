"""Gate files: sealed safetensors with everything that was learned and chosen."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from sparsebert.errors import FileError, GateError
from sparsebert.files import open_sealed_tensors, read_bytes, seal_tensors, write_atomic
from sparsebert.gates.gate import Gate
from sparsebert.gates.schedules import Schedule
from sparsebert.gates.structured import Structured
from sparsebert.gates.unstructured import Soft, Unstructured

FORMAT = 1
_KINDS: dict[str, type[Structured] | type[Unstructured]] = {
    "structured": Structured,
    "unstructured": Unstructured,
    "soft": Soft,
}


def save(gate: Gate, path: str | Path) -> None:
    """A sealed file; equal gates give equal bytes."""
    kind = next(name for name, cls in _KINDS.items() if type(gate) is cls)
    about = {
        "kind": "gate",
        "format": FORMAT,
        "gate": kind,
        "length": gate.length,
        "heads": gate.heads,
        "anchor": gate.anchor,
        "sparsity": gate.sparsity,
        "penalty": gate.penalty_weight,
        "steps": gate.steps,
        "settings": asdict(gate.settings),
    }
    tensors = {name: tensor.detach().cpu().numpy() for name, tensor in gate.state_dict().items()}
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
        gate.load_state_dict({name: torch.from_numpy(array.copy()) for name, array in tensors.items()})
    except (KeyError, TypeError, ValueError, RuntimeError, GateError) as error:
        raise FileError(f"{path} cannot be rebuilt as a gate: {error}") from error
    return gate


def _rebuilt(about: dict[str, Any]) -> Gate:
    settings = dict(about["settings"])
    settings["temperature"] = Schedule(**settings["temperature"])
    names = ("length", "heads", "anchor", "sparsity", "penalty", "steps")
    return _KINDS[about["gate"]](**{name: about[name] for name in names}, **settings)
