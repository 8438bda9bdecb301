"""Several calls of the C++ kernel, prepared once and run in one call: Python is entered once, not for each of them."""

import ctypes
from collections.abc import Sequence

from sparsebert.attention.sparse_library import Call
from sparsebert.layers.int8_library import ATTENTION_STEP, LINEAR_STEP, KernelStep, LinearCall, checked, run_steps


class Steps:
    """Calls in their order; run again, they read and write the same memory."""

    def __init__(self, calls: Sequence[LinearCall | Call]) -> None:
        self.calls = list(calls)  # whose addresses the steps hold
        kinds = [LINEAR_STEP if isinstance(call, LinearCall) else ATTENTION_STEP for call in calls]
        made = [KernelStep(kind, ctypes.addressof(call)) for kind, call in zip(kinds, calls, strict=True)]
        self._steps = (KernelStep * len(made))(*made)

    def run(self) -> None:
        checked(run_steps()(self._steps, len(self._steps)))
