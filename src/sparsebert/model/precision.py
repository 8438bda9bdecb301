"""In which numbers a model runs: as it was saved, in bfloat16, or with int8 layers; weights are converted once."""

from collections.abc import Callable
from typing import Any, Literal

from sparsebert.errors import ConfigError
from sparsebert.model.quantisation import quantize, to_bfloat16
from sparsebert.settings import refuse_unknown

Precision = Literal["fp32", "bf16", "int8"]


def _as_saved(model: Any) -> Any:
    return model


PRECISIONS: dict[str, Callable[[Any], Any]] = {"fp32": _as_saved, "bf16": to_bfloat16, "int8": quantize}


def check_precision(name: str) -> None:
    """Refuse a name that is none of the three, before a model is loaded."""
    refuse_unknown(name, PRECISIONS, ConfigError, "there is no precision")


def in_precision(model: Any, name: str) -> Any:
    """The model in these numbers, for inference; converted in place."""
    check_precision(name)
    return PRECISIONS[name](model)
