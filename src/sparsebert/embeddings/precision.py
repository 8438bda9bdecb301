"""In which numbers a model is run; its weights are converted once, before the first text."""

from collections.abc import Callable
from typing import Any, Literal

from sparsebert.model.quantisation import quantize, to_bfloat16

Precision = Literal["fp32", "bf16", "int8"]


def _as_saved(model: Any) -> Any:
    return model


PRECISIONS: dict[str, Callable[[Any], Any]] = {"fp32": _as_saved, "bf16": to_bfloat16, "int8": quantize}
