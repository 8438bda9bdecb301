"""What an importance run leaves in its folder: the values themselves, and a summary for tables and figures."""

import io
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from sparsebert import gates
from sparsebert.errors import FileError
from sparsebert.files import open_sealed_tensors, read_bytes, read_json, seal_tensors, write_atomic, write_json
from sparsebert.importance.averages import normalised, offset_profile
from sparsebert.importance.categories import NAMES, by_category

GATE, ATTENTION = "gate.safetensors", "attention.safetensors"
_SUMMARY, _HEAT = "importance.json", "heat.npy"
# As importance.json spelled categories before they had one name everywhere.
_EARLIER_NAMES = dict(zip(NAMES, ("diagonal", "1", "2", "3-5", "cls", "sep", "other"), strict=True))

Method = Literal["soft", "attention"]  # a learned P, or the averaged maps of a trained model


@dataclass(frozen=True)
class Summary:
    """What one importance run found."""

    method: Method
    categories: Mapping[str, tuple[float, ...]]  # name of a category -> its mean importance in each head
    profile: tuple[float, ...]  # mean importance of each |offset|, off the border
    heat: Float[np.ndarray, "n n"] | None  # mean over heads after each row was divided by its mean


def importance_of(gate: gates.Gate) -> Float[np.ndarray, "heads n n"]:
    """P of a gate, without noise."""
    return gate.eval().values().detach().double().cpu().numpy()


def save_maps(folder: Path, maps: Float[np.ndarray, "heads n n"]) -> None:
    """Averaged attention maps."""
    write_atomic(folder / ATTENTION, seal_tensors({"maps": maps}, {"kind": "attention maps", "format": 1}))


def load_importance(folder: Path) -> Float[np.ndarray, "heads n n"]:
    """P, or the averaged attention maps, of a finished importance run."""
    gate = gates.load(folder / GATE) if (folder / GATE).is_file() else None
    if gate is not None and not isinstance(gate, gates.Soft):
        raise FileError(
            f"{folder} is a search, which has found its pattern already (pattern.safetensors); "
            "expected a finished importance run"
        )
    found = _maps(folder) if gate is None else importance_of(gate)
    if found is None:
        raise FileError(f"{folder} holds neither {GATE} nor {ATTENTION}; expected a finished importance run")
    return found


def find_importance(folder: Path) -> Float[np.ndarray, "heads n n"] | None:
    """What the gate of any run gives every entry, or the averaged attention maps; None where it left neither."""
    return importance_of(gates.load(folder / GATE)) if (folder / GATE).is_file() else _maps(folder)


def _maps(folder: Path) -> Float[np.ndarray, "heads n n"] | None:
    path = folder / ATTENTION
    if not path.is_file():
        return None
    tensors, about = open_sealed_tensors(read_bytes(path), path)
    if about.get("kind") != "attention maps" or "maps" not in tensors or tensors["maps"].ndim != 3:
        raise FileError(f"{path} holds no attention maps; run the importance analysis again")
    return tensors["maps"].astype(float)


def _summed_up(importance: Float[np.ndarray, "heads n n"], method: Method) -> dict[str, Any]:
    return {
        "categories": {name: means.tolist() for name, means in by_category(importance).items()},
        "offset_profile": offset_profile(importance),
        "method": method,
    }


def write_summary(folder: Path, method: Method) -> None:
    """importance.json and heat.npy, from the values that the folder holds."""
    importance = load_importance(folder)
    write_json(folder / _SUMMARY, _summed_up(importance, method))
    buffer = io.BytesIO()
    np.save(buffer, normalised(importance).astype(np.float32))
    write_atomic(folder / _HEAT, buffer.getvalue())


def read_summary(folder: Path) -> Summary | None:
    """From importance.json, or from the values where there is no such file; None where there are no values either."""
    importance, path = find_importance(folder), folder / _SUMMARY
    if path.is_file():
        about = read_json(path)
    elif importance is not None:
        about = _summed_up(importance, "soft" if (folder / GATE).is_file() else "attention")
    else:
        return None
    if not isinstance(about, dict) or not isinstance(about.get("categories"), dict):
        raise FileError(f"{path} has no categories; run the importance analysis again")
    found = {name: about["categories"].get(name, about["categories"].get(old)) for name, old in _EARLIER_NAMES.items()}
    return Summary(
        "attention" if about.get("method") == "attention" else "soft",
        {name: _numbers(means, path) for name, means in found.items() if means is not None},
        _numbers(about.get("offset_profile", []), path),
        _saved_heat(folder / _HEAT) if importance is None else normalised(importance),
    )


def _saved_heat(path: Path) -> Float[np.ndarray, "n n"] | None:
    """The picture alone, where a run was kept without its values."""
    if not path.is_file():
        return None
    try:
        heat = np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise FileError(f"{path} is not an array of numbers ({error}); run the importance analysis again") from error
    return heat.astype(float) if heat.ndim == 2 and heat.dtype.kind == "f" else None


def _numbers(found: Any, path: Path) -> tuple[float, ...]:
    """Each as it stands: leaving one out would give the others to the wrong heads or distances."""
    is_list = isinstance(found, list) and all(isinstance(one, int | float) and math.isfinite(one) for one in found)
    if not is_list:
        raise FileError(f"{path} holds {str(found)[:40]} where numbers belong; run the importance analysis again")
    return tuple(float(one) for one in found)
