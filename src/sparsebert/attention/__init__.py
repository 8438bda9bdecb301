"""attend(): attention over the entries that a pattern keeps. One operation, many backends.

attend() -> checked Inputs -> reference (the oracle) | sdpa (dense) | gated (soft, learnable)
                              | sparse (C++, CPUs) | triton, flex (GPUs)
"""

from sparsebert.attention.dispatch import BACKENDS, Choice, attend, choose
from sparsebert.attention.inputs import Gate, Inputs, Relaxation

__all__ = ["BACKENDS", "Choice", "Gate", "Inputs", "Relaxation", "attend", "choose"]
