"""One call of the C++ kernel: tensors in, tensors out. Every array goes with its size, which C++ checks."""

import ctypes
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sparsebert.attention.inputs import bert_layout
from sparsebert.attention.sparse_indices import Indices
from sparsebert.attention.sparse_library import Array, Call, Strided, checked, isa, library
from sparsebert.errors import AttentionError

DTYPES = {torch.float32: 0, torch.float64: 1, torch.bfloat16: 2, torch.float16: 3}  # the kernel's numbers for them
SUMS = {dtype: torch.float64 if dtype is torch.float64 else torch.float32 for dtype in DTYPES}  # what it adds up in


class Operands(NamedTuple):
    """What attention is computed from. Of a packed row the batch is 1, and n the tokens of all its examples."""

    query: Float[Tensor, "batch heads n d"]
    key: Float[Tensor, "batch heads n d"]
    value: Float[Tensor, "batch heads n d"]
    bias: Float[Tensor, "..."] | None  # one value per entry of the index
    lengths: Int[Tensor, " examples"] | None
    seed: Int[Tensor, " 1"] | None  # of dropout
    scale: float
    dropout: float
    packed: bool = False

    @property
    def examples(self) -> int:
        return len(self.lengths) if self.packed and self.lengths is not None else self.query.shape[0]


def forward(indices: Indices, given: Operands, save: bool) -> tuple[Tensor, Tensor]:
    """The output, and the kept attention weights when they are to be saved for the gradient."""
    call, query = new_call(indices, given), given.query
    output = bert_layout(query)
    # Entries that only longer examples use are never written: they are zeros, not what memory happened to hold.
    fill = torch.empty if given.lengths is None else torch.zeros
    shape = weights_shape(given.examples, query.shape[1], indices.heads, indices.kept) if save else (0,)
    weights = fill(shape, dtype=SUMS[query.dtype])
    hand_over(call, query, out=output)
    call.weights = as_array(weights, SUMS[query.dtype])
    checked(library().sb_forward(ctypes.byref(call)))
    return output, weights


def prepared_forward(indices: Indices, given: Operands, output: Float[Tensor, "batch heads n d"]) -> Call:
    """A forward that is ready to run, saves no weights, and holds what it reads and writes."""
    call = new_call(indices, given)
    hand_over(call, given.query, out=output)
    call.alive.append(indices)
    return call


def backward(
    indices: Indices,
    given: Operands,
    grad: Float[Tensor, "batch heads n d"],
    output: Float[Tensor, "batch heads n d"],
    weights: Float[Tensor, "..."],
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """The gradients of query, key, value and bias."""
    call, query, bias = new_call(indices, given), given.query, given.bias
    of_query, of_key, of_value = (bert_layout(query) for _ in range(3))
    hand_over(call, query, out=output, grad_out=grad, grad_query=of_query, grad_key=of_key, grad_value=of_value)
    of_bias = None if bias is None else torch.empty(bias.shape, dtype=bias.dtype)
    if of_bias is not None:
        call.grad_bias = as_array(of_bias, SUMS[query.dtype])
    weights = weights.contiguous()
    call.weights = as_array(weights, SUMS[query.dtype])
    checked(library().sb_backward(ctypes.byref(call)))
    return of_query, of_key, of_value, of_bias


def weights_shape(examples: int, heads: int, pattern_heads: int, kept: int | torch.SymInt) -> tuple[Any, ...]:
    """Of the kept attention weights: for each head where the heads share one pattern, else all heads' in a row."""
    return (examples, heads, kept) if pattern_heads == 1 else (examples, kept)


def new_call(indices: Indices, given: Operands) -> Call:
    """A call with what it is computed from, and no room for results yet."""
    query = given.query
    if query.ndim != 4 or query.dtype not in DTYPES or query.device.type != "cpu":
        raise AttentionError(
            f"the kernel was handed {query.dtype} {list(query.shape)} on {query.device}; it takes floating-point "
            "[batch, heads, n, head size] on the CPU"
        )
    _, heads, _, size = query.shape
    call = Call(index=indices.number, batch=given.examples, heads=heads, length=indices.length, size=size)
    call.packed = given.packed
    call.scale, call.dropout = given.scale, given.dropout
    call.bytes, call.dtype = ctypes.sizeof(Call), DTYPES[query.dtype]
    call.seed = 0 if given.seed is None else int(given.seed) % 2**64
    call.threads, call.isa = torch.get_num_threads(), isa()
    call.alive = []  # what it reads from: the structure itself holds only addresses
    for name, tensor, dtype in (("bias", given.bias, SUMS[query.dtype]), ("lengths", given.lengths, torch.int64)):
        if tensor is not None:
            call.alive.append(tensor.contiguous())
            setattr(call, name, as_array(call.alive[-1], dtype))
    hand_over(call, query, query=query, key=given.key, value=given.value)
    return call


def hand_over(call: Call, like: Tensor, **tensors: Tensor) -> None:
    """Tell a call where tensors like this one lie; those laid out otherwise than the kernel reads them are copied."""
    for name, tensor in tensors.items():
        if (tensor.shape, tensor.dtype, tensor.device) != (like.shape, like.dtype, like.device):
            raise AttentionError(
                f"the kernel was handed {tensor.dtype} {list(tensor.shape)} on {tensor.device} beside {like.dtype} "
                f"{list(like.shape)} on {like.device}; it takes one type, shape and device for all"
            )
        rows = _row_wise(tensor)
        batch, head, row, _ = rows.stride()
        left = rows.untyped_storage().nbytes() - rows.storage_offset() * rows.element_size()
        setattr(call, name, Strided(rows.data_ptr(), left, batch, head, row))
        call.alive.append(rows)


def as_array(tensor: Tensor, dtype: torch.dtype) -> Array:
    if tensor.dtype != dtype or tensor.device.type != "cpu":
        raise AttentionError(
            f"the kernel was handed {tensor.dtype} on {tensor.device}; it takes {dtype} on the CPU here"
        )
    return Array(tensor.data_ptr(), tensor.numel() * tensor.element_size())


def _row_wise(tensor: Tensor) -> Tensor:
    """The tensor itself where each row's numbers lie one after another, as BERT's and all results do; else a copy."""
    together = tensor.stride(-1) == 1 or tensor.shape[-1] == 1
    if together and tensor.data_ptr() % tensor.element_size() == 0:
        return tensor
    return tensor.clone(memory_format=torch.contiguous_format)
