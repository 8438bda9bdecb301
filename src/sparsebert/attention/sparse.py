"""Attention at the cost of the kept entries: the C++ kernel as a torch operator with a gradient.

attend_sparse(inputs) -> attention over an index -> torch.library operator -> ctypes -> csrc/
"""

import ctypes
from functools import lru_cache
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sparsebert import patterns
from sparsebert.attention.inputs import Inputs
from sparsebert.attention.sparse_indices import Indices, find, indices_for
from sparsebert.attention.sparse_library import Problem, Strided, isa, library
from sparsebert.errors import AttentionError
from sparsebert.patterns import Pattern

_TYPES = {torch.float32: 0, torch.float64: 1, torch.bfloat16: 2}
_SUMS = {torch.float32: torch.float32, torch.float64: torch.float64, torch.bfloat16: torch.float32}


def supports(query: Tensor) -> bool:
    """Whether the kernel takes a tensor of this type and place."""
    return query.dtype in _TYPES and query.device.type == "cpu"


def attend_sparse(inputs: Inputs) -> Float[Tensor, "batch heads n d"]:
    if inputs.gate is not None:
        raise AttentionError("backend 'sparse' takes no gate; use backend='gated', or a bias per kept entry")
    pattern = _everything(inputs.length) if inputs.pattern is None else inputs.pattern
    return attend_over(
        _name(pattern, inputs.length),
        inputs.query,
        inputs.key,
        inputs.value,
        lengths=inputs.lengths,
        dropout=inputs.dropout,
        scale=inputs.scale,
        bias=inputs.bias,
    )


def attend_over(
    index: str,
    query: Float[Tensor, "batch heads n d"],
    key: Float[Tensor, "batch heads n d"],
    value: Float[Tensor, "batch heads n d"],
    *,
    lengths: Int[Tensor, " batch"] | None = None,
    dropout: float = 0.0,
    scale: float | None = None,
    bias: Float[Tensor, "..."] | None = None,
) -> Float[Tensor, "batch heads n d"]:
    """Attention over an index by its name; a search that changes its pattern at every step comes in here, with an
    index built straight from offsets. The caller keeps the index alive."""
    if query.dtype not in _TYPES:
        raise AttentionError(f"query is {query.dtype}; backend 'sparse' takes float32, float64 and bfloat16")
    if query.device.type != "cpu":
        raise AttentionError(f"query is on {query.device}; backend 'sparse' runs on the CPU, so use 'flex' or 'sdpa'")
    if bias is not None:
        bias = _cropped(bias, index).to(_SUMS[query.dtype])
    tensors = (query, key, value) if bias is None else (query, key, value, bias)
    learns = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
    output: Tensor = _attention(
        query,
        key,
        value,
        bias,
        None if lengths is None else lengths.to(torch.int64),
        torch.randint(-(2**63), 2**63 - 1, (1,)) if dropout > 0 else None,
        index,
        query.shape[-1] ** -0.5 if scale is None else float(scale),
        float(dropout),
        learns,
    )[0]
    return output


def survivors(
    indices: Indices, batch: int, heads: int, dropout: float, seed: int, lengths: Int[Tensor, " batch"] | None = None
) -> Bool[Tensor, "batch heads kept"]:
    """Which entries' weights survive dropout under a seed; entries are counted from each head's first, and rows of
    heads that keep fewer are filled up with False. For replaying what a call has dropped."""
    problem = _problem(indices, batch, heads, lengths, 1.0, dropout, torch.tensor([seed]))
    counts = indices.rows.starts[:, -1] - indices.rows.starts[:, 0]
    flags = torch.zeros(batch, heads, int(counts.max()), dtype=torch.uint8)
    for example in range(batch):
        for head in range(heads):
            library().sb_survivors(problem, example, head, flags[example, head].data_ptr())
    return flags.bool()


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def _name(pattern: Pattern, length: int) -> str:
    """The name of a pattern's index, which exists from here on; a constant to a compiled graph."""
    return indices_for(pattern, length).name


@lru_cache(maxsize=4)
def _everything(length: int) -> Pattern:
    return patterns.full(length)


def _cropped(bias: Tensor, index: str) -> Tensor:
    """A bias of the whole pattern, reduced to the entries that an input of this length uses."""
    origin = find(index).origin
    return bias if origin is None else bias[..., torch.from_numpy(origin)]


@torch.library.custom_op("sparsebert::attention", mutates_args=(), device_types="cpu")
def _attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    bias: Tensor | None,
    lengths: Tensor | None,
    seed: Tensor | None,
    index: str,
    scale: float,
    dropout: float,
    save: bool,
) -> tuple[Tensor, Tensor]:
    """The output, and the kept attention weights when they are to be saved for the gradient."""
    query, key, value = map(_row_wise, (query, key, value))
    indices = find(index)
    output = _bert_layout(query)
    # Entries that only longer examples use are never written: they are zeros, not what memory happened to hold.
    fill = torch.empty if lengths is None else torch.zeros
    weights = fill(_weights_shape(indices, query) if save else 0, dtype=_SUMS[query.dtype])
    problem = _problem(indices, query.shape[0], query.shape[1], lengths, scale, dropout, seed)
    _set_tensors(problem, query=query, key=key, value=value, out=output)
    _set_bias(problem, bias)
    problem.weights = weights.data_ptr() if save else None
    _call("sb_forward", problem)
    return output, weights


@torch.library.custom_op("sparsebert::attention_backward", mutates_args=(), device_types="cpu")
def _attention_backward(
    grad: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    bias: Tensor | None,
    lengths: Tensor | None,
    seed: Tensor | None,
    output: Tensor,
    weights: Tensor,
    index: str,
    scale: float,
    dropout: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The gradients of query, key, value and bias (empty where there is none)."""
    grad, query, key, value = map(_row_wise, (grad, query, key, value))
    grads = [_bert_layout(query) for _ in range(3)]
    grad_bias = weights.new_empty(0) if bias is None else torch.empty_like(bias, memory_format=torch.contiguous_format)
    problem = _problem(find(index), query.shape[0], query.shape[1], lengths, scale, dropout, seed)
    _set_tensors(problem, query=query, key=key, value=value, out=_row_wise(output), grad_out=grad)
    _set_tensors(problem, grad_query=grads[0], grad_key=grads[1], grad_value=grads[2])
    _set_bias(problem, bias)
    problem.grad_bias = None if bias is None else grad_bias.data_ptr()
    problem.weights = weights.data_ptr()
    _call("sb_backward", problem)
    return grads[0], grads[1], grads[2], grad_bias


@_attention.register_fake
def _(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    bias: Tensor | None,
    lengths: Tensor | None,
    seed: Tensor | None,
    index: str,
    scale: float,
    dropout: float,
    save: bool,
) -> tuple[Tensor, Tensor]:
    shape = _weights_shape(find(index), query) if save else 0
    return _bert_layout(query), query.new_empty(shape, dtype=_SUMS[query.dtype])


@_attention_backward.register_fake
def _(
    grad: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    bias: Tensor | None,
    lengths: Tensor | None,
    seed: Tensor | None,
    output: Tensor,
    weights: Tensor,
    index: str,
    scale: float,
    dropout: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    like_bias = weights.new_empty(0) if bias is None else bias.new_empty(bias.shape)
    return _bert_layout(query), _bert_layout(query), _bert_layout(query), like_bias


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    query, key, value, bias, lengths, seed, index, scale, dropout, _ = inputs
    ctx.save_for_backward(query, key, value, bias, lengths, seed, *output)
    ctx.settings = (index, scale, dropout)
    ctx.indices = find(index)  # kept alive until the gradient is taken
    ctx.mark_non_differentiable(output[1])
    ctx.set_materialize_grads(False)


def _backward(ctx: Any, grad: Tensor | None, _: Tensor | None) -> tuple[Tensor | None, ...]:
    if grad is None:
        return (None,) * 10
    grads = _attention_backward(grad, *ctx.saved_tensors, *ctx.settings)
    grad_bias = None if ctx.saved_tensors[3] is None else grads[3]
    return (*grads[:3], grad_bias, None, None, None, None, None, None)


_attention.register_autograd(_backward, setup_context=_setup_context)


def _row_wise(tensor: Tensor) -> Tensor:
    """The tensor itself where each row's numbers lie one after another, as BERT's do; else a copy."""
    return tensor if tensor.stride(-1) == 1 or tensor.shape[-1] == 1 else tensor.contiguous()


def _bert_layout(query: Tensor) -> Tensor:
    """Memory laid out [batch, n, heads, d], so that joining the heads afterwards costs nothing."""
    batch, heads, length, size = query.shape
    return query.new_empty(batch, length, heads, size).transpose(1, 2)


def _weights_shape(indices: Indices, query: Tensor) -> tuple[int, ...]:
    batch, heads = query.shape[:2]
    return (batch, heads, indices.kept) if indices.heads == 1 else (batch, indices.kept)


def _problem(
    indices: Indices,
    batch: int,
    heads: int,
    lengths: Tensor | None,
    scale: float,
    dropout: float,
    seed: Tensor | None,
) -> Problem:
    problem = Problem(batch=batch, heads=heads, length=indices.length, pattern_heads=indices.heads, kept=indices.kept)
    problem.rows, problem.columns = indices.rows.pointers, indices.columns.pointers
    if lengths is not None:
        lengths = lengths.contiguous()
        problem.lengths, problem.owner = lengths.data_ptr(), lengths  # the structure holds only an address
    problem.token, problem.scale, problem.dropout = int(indices.token), scale, dropout
    problem.seed = 0 if seed is None else int(seed) % 2**64
    problem.threads, problem.isa = torch.get_num_threads(), isa()
    return problem


def _set_tensors(problem: Problem, **tensors: Tensor) -> None:
    for name, tensor in tensors.items():
        batch, head, row, _ = tensor.stride()
        setattr(problem, name, Strided(tensor.data_ptr(), batch, head, row))
        problem.size, problem.dtype = tensor.shape[-1], _TYPES[tensor.dtype]


def _set_bias(problem: Problem, bias: Tensor | None) -> None:
    if bias is not None:
        bias = bias.contiguous()
        problem.bias, problem.bias_owner = bias.data_ptr(), bias
        problem.bias_stride = problem.kept if bias.ndim == 2 else 0


def _call(name: str, problem: Problem) -> None:
    if getattr(library(), name)(ctypes.byref(problem)):
        raise AttentionError("backend 'sparse' ran out of memory; use a smaller batch or a sparser pattern")
