"""What a forward has made of a gate's parameters, kept until something changes."""

from collections.abc import Callable
from typing import Any, TypeVar

import torch

T = TypeVar("T")


class Made:
    """Values by name, forgotten as soon as the parameters that they were made of are others."""

    def __init__(self) -> None:
        self._state: Any = None
        self._values: dict[Any, Any] = {}

    def get(self, module: torch.nn.Module, name: Any, make: Callable[[], T]) -> T:
        """What `make` gives, made once for a forward of the module."""
        state: list[Any] = [torch.is_grad_enabled(), module.training]
        for parameter in module.parameters():
            # An optimiser changes parameters in place, which their version counters show; to() changes what they hold.
            state += [parameter._version, parameter.device, parameter.dtype]
        if self._state != state:
            self._state, self._values = state, {}
        if name not in self._values:
            self._values[name] = make()
        made: T = self._values[name]
        return made

    def clear(self) -> None:
        self._values.clear()
