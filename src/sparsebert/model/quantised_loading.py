"""The way back from a folder of an int8 model to the same bits.

sealed tensors -> the model without memory -> do names and shapes fit -> the model -> int8 layers -> tensors
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from huggingface_hub.errors import StrictDataclassError
from torch import Tensor

from sparsebert.errors import ModelError
from sparsebert.files import open_sealed_tensors, read_bytes
from sparsebert.layers import Int8Linear, require_kernel
from sparsebert.model.folder_checks import INT8_FILE, check_config, check_loaded, refuse_other_weights
from sparsebert.model.quantisation import empty_layers, put_layers
from sparsebert.model.quantised_saving import FORMAT, KIND
from sparsebert.model.saved_pattern import read_pattern


def is_quantised_folder(folder: str | Path) -> bool:
    return (Path(folder) / INT8_FILE).is_file()


def load_quantised(folder: Path, build: Callable[[], Any]) -> Any:
    """The int8 model of a folder. build: makes a model of its family with the head that was asked for."""
    require_kernel()
    refuse_other_weights(folder, beside=INT8_FILE)
    check_config(folder)
    tensors, about = open_sealed_tensors(read_bytes(folder / INT8_FILE), folder / INT8_FILE)
    if about.get("kind") != KIND or about.get("format") != FORMAT:
        raise ModelError(f"{folder / INT8_FILE} is no int8 model of format {FORMAT}; save the model again")
    try:
        with torch.device("meta"):
            planned = build()
            put_layers(planned, empty_layers(planned))
        tensors = _renamed(tensors, planned)
        _check(folder, planned, tensors)
        model = build()
    except (ValueError, TypeError, KeyError, RuntimeError, StrictDataclassError) as error:
        raise ModelError(f"{folder} holds no int8 model that can be built: {error}") from error
    if model.config.pattern is not None:
        model.set_pattern(read_pattern(folder, model.config.pattern, {}))
    put_layers(model, empty_layers(model))
    model.load_state_dict({name: torch.from_numpy(array.copy()) for name, array in tensors.items()}, strict=False)
    _check_sums(folder, model)
    return model.eval().requires_grad_(False)


def _renamed(tensors: dict[str, np.ndarray], model: Any) -> dict[str, np.ndarray]:
    """Under the names of this class: a bare encoder's lack the prefix that a model with a head gives them."""
    wanted, prefix = model.state_dict().keys(), f"{model.base_model_prefix}."

    def name_of(name: str) -> str:
        return next((each for each in (name, prefix + name, name.removeprefix(prefix)) if each in wanted), name)

    return {name_of(name): array for name, array in tensors.items()}


def _check(folder: Path, planned: Any, tensors: dict[str, np.ndarray]) -> None:
    """The same names, shapes and types as the model that is to be built."""
    wanted: dict[str, Tensor] = planned.state_dict()
    both = wanted.keys() & tensors.keys()
    info = {
        "missing_keys": wanted.keys() - tensors.keys(),
        "unexpected_keys": tensors.keys() - wanted.keys(),
        "mismatched_keys": [
            (name, tensors[name].shape, wanted[name].shape)
            for name in both
            if tensors[name].shape != tuple(wanted[name].shape)
        ],
    }
    check_loaded(folder, planned, info)
    for name in both:
        if torch.from_numpy(tensors[name][:0]).dtype != wanted[name].dtype:
            raise ModelError(f"{folder} holds {name} as {tensors[name].dtype}; expected {wanted[name].dtype}")
    for name in tensors.keys() - wanted.keys():
        del tensors[name]


def _check_sums(folder: Path, model: Any) -> None:
    """The sums of weights are saved beside them; a kernel that was handed others would be wrong without a word."""
    for name, layer in model.named_modules():
        if isinstance(layer, Int8Linear) and not layer.is_consistent():
            raise ModelError(f"{folder} holds sums of {name} that are not those of its weights; save the model again")
