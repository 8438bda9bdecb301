"""Attention at the cost of the kept entries: the C++ kernel behind torch's operators.

attend_sparse(inputs) -> sparse_operator (autograd, compile, export, vmap) -> sparse_kernel -> ctypes -> csrc/
"""

import torch
from jaxtyping import Float
from torch import Tensor

from sparsebert.attention.gate_bias import obstacle, with_bias
from sparsebert.attention.inputs import Inputs, is_forward_mode
from sparsebert.attention.sparse_indices import indices_for, rows_of
from sparsebert.attention.sparse_kernel import DTYPES, SUMS, Operands, prepared_forward
from sparsebert.attention.sparse_library import Call
from sparsebert.attention.sparse_operator import CallSettings, attention
from sparsebert.errors import AttentionError
from sparsebert.patterns import Pattern


def supports(query: Tensor) -> bool:
    """Whether the kernel takes a tensor of this type and place."""
    return query.dtype in DTYPES and query.device.type == "cpu"


def takes_gate(inputs: Inputs) -> bool:
    """Whether the kernel can learn this gate."""
    return obstacle(inputs, SUMS[inputs.query.dtype]) is None


def attend_sparse(inputs: Inputs) -> Float[Tensor, "batch heads n d"]:
    query = inputs.query
    if query.dtype not in DTYPES:
        raise AttentionError(f"query is {query.dtype}; backend 'sparse' takes float16, bfloat16, float32 and float64")
    if query.device.type != "cpu":
        raise AttentionError(f"query is on {query.device}; backend 'sparse' runs on the CPU, so use 'triton' or 'sdpa'")
    if is_forward_mode(inputs):
        raise AttentionError(
            "backend 'sparse' has no forward-mode derivative; use backend='reference', or reverse mode"
        )
    if inputs.gate is not None:
        inputs = with_bias(inputs, SUMS[query.dtype])
    pattern = inputs.pattern_or_full()
    starts, keys = rows_of(pattern)
    return attention(
        query,
        inputs.key,
        inputs.value,
        None if inputs.bias is None else inputs.bias.to(SUMS[query.dtype]),
        None if inputs.lengths is None else inputs.lengths.to(torch.int64),
        inputs.drawn_seed(),
        starts,
        keys,
        settings=CallSettings(
            _digest(pattern), pattern.anchor == "token", float(inputs.scale), float(inputs.dropout), inputs.packed
        ),
    )


def prepared_attention(inputs: Inputs, output: Float[Tensor, "batch heads n d"]) -> Call:
    """attend_sparse() as a call that is yet to run, into `output`: in inference, under a pattern and nothing else."""
    pattern = inputs.pattern_or_full()
    starts, keys = rows_of(pattern)
    indices = indices_for(starts, keys, pattern.digest, pattern.anchor == "token", inputs.length)
    lengths = None if inputs.lengths is None else inputs.lengths.to(torch.int64)
    scale = float(inputs.scale)
    operands = Operands(inputs.query, inputs.key, inputs.value, None, lengths, None, scale, 0.0, inputs.packed)
    return prepared_forward(indices, operands, output)


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def _digest(pattern: Pattern) -> str:
    return pattern.digest
