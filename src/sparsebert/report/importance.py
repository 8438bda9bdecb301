"""What an importance run found: means by category and distance, and the picture of P."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int64

from sparsebert.errors import FileError
from sparsebert.files import open_sealed_tensors, read_bytes, read_json
from sparsebert.report.study import Run, Study, number

CATEGORIES = ("diagonal", "1", "2", "3-5", "cls", "sep", "other")
CATEGORY_TITLES = {
    "diagonal": "diagonal",
    "1": "±1",
    "2": "±2",
    "3-5": "±3…5",
    "cls": "[CLS]",
    "sep": "[SEP]",
    "other": "other",
}


@dataclass(frozen=True)
class Importance:
    """Of one run. method: "soft", a learned P, or "attention", the averaged maps of a trained model."""

    run: Run
    method: str
    categories: Mapping[str, tuple[float, ...]]  # category -> its mean importance in each head
    profile: tuple[float, ...]  # mean importance of each |offset|, off the border
    heat: Float[np.ndarray, "n n"] | None  # mean over heads after each row was divided by its mean


@lru_cache(maxsize=4)
def importances(study: Study) -> tuple[Importance, ...]:
    """Of every finished importance run that left something to read."""
    found = (read_importance(run) for run in study.finished("importance"))
    return tuple(one for one in found if one is not None)


def read_importance(run: Run) -> Importance | None:
    """From importance.json, or from the values themselves where there is no such file."""
    values = read_values(run.path)
    path = run.path / "importance.json"
    if path.is_file():
        about = read_json(path)
        if not isinstance(about, dict):
            raise FileError(f"{path} is not a JSON object; run the importance analysis again")
        categories, profile = _numbers_by_category(about.get("categories"), path), _numbers(about.get("offset_profile"))
        method = str(about.get("method", "soft"))
    elif values is not None:
        categories, profile = _by_category(values), tuple(float(mean) for mean in profile_of(values))
        method = "attention" if (run.path / "attention.safetensors").is_file() else "soft"
    else:
        return None
    heat = _saved_heat(run.path / "heat.npy") if values is None else normalised(values)
    return Importance(run, "attention" if method == "attention" else "soft", categories, profile, heat)


def read_values(folder: Path) -> Float[np.ndarray, "heads n n"] | None:
    """P of the gate, or the averaged attention maps, whichever the folder holds."""
    if (folder / "gate.safetensors").is_file():
        from sparsebert import gates

        return gates.load(folder / "gate.safetensors").eval().values().detach().double().numpy()
    maps = folder / "attention.safetensors"
    if not maps.is_file():
        return None
    tensors, _ = open_sealed_tensors(read_bytes(maps), maps)
    if "maps" not in tensors or tensors["maps"].ndim != 3:
        raise FileError(f"{maps} holds no attention maps; run the importance analysis again")
    return tensors["maps"].astype(float)


def _saved_heat(path: Path) -> Float[np.ndarray, "n n"] | None:
    """The picture alone, where a run was kept without its gate."""
    if not path.is_file():
        return None
    try:
        heat = np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise FileError(f"{path} is not an array of numbers ({error}); run the importance analysis again") from error
    return heat.astype(float) if heat.ndim == 2 and heat.dtype.kind == "f" else None


def normalised(values: Float[np.ndarray, "heads n n"]) -> Float[np.ndarray, "n n"]:
    """Mean over heads, each row divided by its mean: a softmax over a row knows P only relative to its row."""
    row_means = values.mean(-1, keepdims=True)
    mean: np.ndarray = (values / np.where(row_means > 0, row_means, 1.0)).mean(0)
    return mean


def category_numbers(length: int) -> Int64[np.ndarray, "n n"]:
    """The place in CATEGORIES of every entry; the border belongs to [CLS] and [SEP], however near."""
    places = np.arange(length)
    distance = np.abs(places[:, None] - places)
    number_of = np.full((length, length), CATEGORIES.index("other"))
    for name, nearest, furthest in (("3-5", 3, 5), ("2", 2, 2), ("1", 1, 1), ("diagonal", 0, 0)):
        number_of[(distance >= nearest) & (distance <= furthest)] = CATEGORIES.index(name)
    number_of[-1, :] = number_of[:, -1] = CATEGORIES.index("sep")
    number_of[0, :] = number_of[:, 0] = CATEGORIES.index("cls")
    return number_of


def profile_of(values: Float[np.ndarray, "heads n n"]) -> Float[np.ndarray, " distances"]:
    """Mean of each |offset| inside the border."""
    inner = values.mean(0)[1:-1, 1:-1]
    both = (inner + inner.T) / 2
    return np.array([np.diagonal(both, distance).mean() for distance in range(len(inner))])


def _by_category(values: Float[np.ndarray, "heads n n"]) -> dict[str, tuple[float, ...]]:
    numbers = category_numbers(values.shape[-1])
    return {
        name: tuple(float(mean) for mean in values[:, numbers == place].mean(1))
        for place, name in enumerate(CATEGORIES)
        if (numbers == place).any()
    }


def _numbers_by_category(found: object, path: Path) -> dict[str, tuple[float, ...]]:
    if not isinstance(found, dict):
        raise FileError(f"{path} has no categories; run the importance analysis again")
    return {name: _numbers(found[name]) for name in CATEGORIES if name in found}


def _numbers(found: object) -> tuple[float, ...]:
    values = [number(value) for value in found] if isinstance(found, list) else []
    return tuple(value for value in values if value is not None)
