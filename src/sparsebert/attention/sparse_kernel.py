"""One call of the C++ kernel: tensors in, tensors out. Every array goes with its size, which C++ checks."""

import ctypes
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sparsebert.attention.sparse_indices import Indices
from sparsebert.attention.sparse_library import Array, Call, Strided, checked, isa, library
from sparsebert.errors import AttentionError

DTYPES = {torch.float32: 0, torch.float64: 1, torch.bfloat16: 2, torch.float16: 3}  # the kernel's numbers for them
SUMS = {dtype: torch.float64 if dtype is torch.float64 else torch.float32 for dtype in DTYPES}  # what it adds up in


def forward(
    indices: Indices,
    query: Float[Tensor, "batch heads n d"],
    key: Float[Tensor, "batch heads n d"],
    value: Float[Tensor, "batch heads n d"],
    bias: Float[Tensor, "..."] | None,
    lengths: Int[Tensor, " batch"] | None,
    seed: Int[Tensor, " 1"] | None,
    scale: float,
    dropout: float,
    save: bool,
) -> tuple[Tensor, Tensor]:
    """The output, and the kept attention weights when they are to be saved for the gradient."""
    call, alive = _call(indices, query, bias, lengths, seed, scale, dropout)
    query, key, value = map(_row_wise, (query, key, value))
    output = bert_layout(query)
    # Entries that only longer examples use are never written: they are zeros, not what memory happened to hold.
    fill = torch.empty if lengths is None else torch.zeros
    shape = weights_shape(query, indices.heads, indices.kept) if save else (0,)
    weights = fill(shape, dtype=SUMS[query.dtype])
    for name, tensor in (("query", query), ("key", key), ("value", value), ("out", output)):
        setattr(call, name, _strided(tensor, query))
    call.weights = _array(weights, SUMS[query.dtype])
    checked(library().sb_forward(ctypes.byref(call)))
    del alive  # until here the kernel read from it
    return output, weights


def backward(
    indices: Indices,
    grad: Float[Tensor, "batch heads n d"],
    query: Float[Tensor, "batch heads n d"],
    key: Float[Tensor, "batch heads n d"],
    value: Float[Tensor, "batch heads n d"],
    bias: Float[Tensor, "..."] | None,
    lengths: Int[Tensor, " batch"] | None,
    seed: Int[Tensor, " 1"] | None,
    output: Float[Tensor, "batch heads n d"],
    weights: Float[Tensor, "..."],
    scale: float,
    dropout: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """The gradients of query, key, value and bias."""
    call, alive = _call(indices, query, bias, lengths, seed, scale, dropout)
    grad, query, key, value, output = map(_row_wise, (grad, query, key, value, output))
    weights = weights.contiguous()
    grads = [bert_layout(query) for _ in range(3)]
    grad_bias = None if bias is None else torch.empty(bias.shape, dtype=bias.dtype)
    names = ("query", "key", "value", "out", "grad_out", "grad_query", "grad_key", "grad_value")
    for name, tensor in zip(names, (query, key, value, output, grad, *grads), strict=True):
        setattr(call, name, _strided(tensor, query))
    if grad_bias is not None:
        call.grad_bias = _array(grad_bias, SUMS[query.dtype])
    call.weights = _array(weights, SUMS[query.dtype])
    checked(library().sb_backward(ctypes.byref(call)))
    del alive
    return grads[0], grads[1], grads[2], grad_bias


def survivors(
    indices: Indices, batch: int, heads: int, dropout: float, seed: int, lengths: Int[Tensor, " batch"] | None = None
) -> Bool[Tensor, "batch heads kept"]:
    """Which entries' weights survive dropout under a seed; entries are counted from each head's first, and rows of
    heads that keep fewer are filled up with False. For replaying what a call has dropped."""
    shape = torch.empty(batch, heads, indices.length, 1)
    call, alive = _call(indices, shape, None, lengths, torch.tensor([seed]), 1.0, dropout)
    flags = torch.zeros(batch, heads, max(indices.kept_by_head), dtype=torch.uint8)
    for example in range(batch):
        for head in range(heads):
            count = indices.kept_by_head[0 if indices.heads == 1 else head]
            checked(library().sb_survivors(call, example, head, flags[example, head].data_ptr(), count))
    del alive
    return flags.bool()


def bert_layout(query: Tensor) -> Tensor:
    """Memory laid out [batch, n, heads, d], so that joining the heads afterwards costs nothing."""
    batch, heads, length, size = query.shape
    return query.new_empty(batch, length, heads, size).transpose(1, 2)


def weights_shape(query: Tensor, pattern_heads: int, kept: int | torch.SymInt) -> tuple[Any, ...]:
    """Of the kept attention weights: for each head where the heads share one pattern, else all heads' in a row."""
    batch, heads = query.shape[:2]
    return (batch, heads, kept) if pattern_heads == 1 else (batch, kept)


def _call(
    indices: Indices,
    query: Tensor,
    bias: Tensor | None,
    lengths: Tensor | None,
    seed: Tensor | None,
    scale: float,
    dropout: float,
) -> tuple[Call, list[Tensor]]:
    """A call without its tensors, and what must stay alive while it runs: structures hold only addresses."""
    if query.ndim != 4 or query.dtype not in DTYPES or query.device.type != "cpu":
        raise AttentionError(
            f"the kernel was handed {query.dtype} {list(query.shape)} on {query.device}; it takes floating-point "
            "[batch, heads, n, head size] on the CPU"
        )
    batch, heads, length, size = query.shape
    call = Call(index=indices.number, batch=batch, heads=heads, length=length, size=size, scale=scale, dropout=dropout)
    call.bytes, call.dtype = ctypes.sizeof(Call), DTYPES[query.dtype]
    call.seed = 0 if seed is None else int(seed) % 2**64
    call.threads, call.isa = torch.get_num_threads(), isa()
    alive = []
    for name, tensor, dtype in (("bias", bias, SUMS[query.dtype]), ("lengths", lengths, torch.int64)):
        if tensor is not None:
            alive.append(tensor.contiguous())
            setattr(call, name, _array(alive[-1], dtype))
    return call, alive


def _array(tensor: Tensor, dtype: torch.dtype) -> Array:
    if tensor.dtype != dtype or tensor.device.type != "cpu":
        raise AttentionError(
            f"the kernel was handed {tensor.dtype} on {tensor.device}; it takes {dtype} on the CPU here"
        )
    return Array(tensor.data_ptr(), tensor.numel() * tensor.element_size())


def _strided(tensor: Tensor, like: Tensor) -> Strided:
    if (tensor.shape, tensor.dtype, tensor.device) != (like.shape, like.dtype, like.device):
        raise AttentionError(
            f"the kernel was handed {tensor.dtype} {list(tensor.shape)} on {tensor.device} beside {like.dtype} "
            f"{list(like.shape)} on {like.device}; it takes one type, shape and device for all"
        )
    batch, head, row, _ = tensor.stride()
    left = tensor.untyped_storage().nbytes() - tensor.storage_offset() * tensor.element_size()
    return Strided(tensor.data_ptr(), left, batch, head, row)


def _row_wise(tensor: Tensor) -> Tensor:
    """The tensor itself where each row's numbers lie one after another, as BERT's do; else a copy."""
    together = tensor.ndim == 4 and (tensor.stride(-1) == 1 or tensor.shape[-1] == 1)
    if together and tensor.data_ptr() % tensor.element_size() == 0:
        return tensor
    return tensor.clone(memory_format=torch.contiguous_format)
