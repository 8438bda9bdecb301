"""attend(): attention over the entries that a pattern keeps. One operation, many backends.

attend() -> checked Inputs -> reference (the oracle) | sdpa (dense) | gated (soft, learnable)
                              | sparse (C++, CPUs) | triton, flex (GPUs) | gather (plain operators, for exports)
"""

from sparsebert.attention.dispatch import BACKENDS, Choice, attend, attend_checked, choose
from sparsebert.attention.inputs import AttentionArguments, GateValues, Inputs, Relaxation, checked_inputs

__all__ = [
    "BACKENDS",
    "AttentionArguments",
    "Choice",
    "GateValues",
    "Inputs",
    "Relaxation",
    "attend",
    "attend_checked",
    "checked_inputs",
    "choose",
]
