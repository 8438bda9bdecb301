"""A gate as a bias of every entry: log P, or -c (1 - P), so that the kernel learns it at the cost of real tokens alone.

The two forms are the gate's own, not an approximation: softmax(S + log P) is P exp(S) divided by its row's sum, and
the gradient of P is that of its logarithm over P. Only an entry that is off altogether has no logarithm.
"""

from dataclasses import replace

import torch

from sparsebert.attention.inputs import Inputs
from sparsebert.errors import AttentionError

# Of values in the log form. Below it exp(S + log P) would lose its digits, and with them what the entry could bring.
_SMALLEST = 1e-30


def obstacle(inputs: Inputs, sums: torch.dtype) -> str | None:
    """Why a gate cannot be a bias of sums in this type; None: it can."""
    gate = inputs.gate
    if gate is None:
        return "there is no gate"
    if gate.relaxation == "multiplicative":
        return "the multiplicative form is no bias"
    if not inputs.keeps_everything:
        return "it is learned inside a pattern"
    if gate.values.dtype != sums:
        return f"its values are {gate.values.dtype} where sums are {sums}"
    if torch.compiler.is_compiling():
        return "a graph cannot look at its values"
    if gate.relaxation == "log" and gate.values.numel() and not bool(gate.values.detach().amin() >= _SMALLEST):
        return "an entry is off altogether"
    return None


def with_bias(inputs: Inputs, sums: torch.dtype) -> Inputs:
    """The same attention, its gate as a bias of a pattern that keeps everything."""
    found = obstacle(inputs, sums)
    if found is not None or inputs.gate is None:
        raise AttentionError(f"backend 'sparse' takes a gate as a bias, but {found}; use backend='gated'")
    values, c = inputs.gate.values, inputs.gate.c
    bias = values.log() if inputs.gate.relaxation == "log" else -c * (1 - values)
    pattern = inputs.everything(values.shape[-1])
    per_head = bias.flatten(1) if bias.shape[0] > 1 else bias.flatten()
    return replace(inputs, pattern=pattern, gate=None, bias=per_head)
