"""The kernel as torch operators: gradients, torch.compile, torch.export, torch.func.

An operator carries its pattern's rows as tensors, so a graph that was saved has all it needs; the digest beside them
finds an index that is already there. Whether weights were saved for the gradient is a matter of speed alone: where
they were not (the call was traced without gradients), the backward pass makes them again.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from sparsebert.attention import sparse_kernel
from sparsebert.attention.inputs import bert_layout, is_transformed
from sparsebert.attention.sparse_indices import Indices, indices_for
from sparsebert.attention.sparse_kernel import SUMS, Operands, weights_shape
from sparsebert.errors import AttentionError


class CallSettings(NamedTuple):
    """What a call is told besides its tensors."""

    digest: str
    token: bool  # each example's last token plays the pattern's last position
    scale: float
    dropout: float
    packed: bool = False  # the tensors are one row, of examples as long as lengths says


def attention(*tensors: Tensor | None, settings: CallSettings) -> Tensor:
    """Attention over a pattern's rows, of the tensors that the operator's schema names; a bias belongs to the entries
    of the whole pattern."""
    if is_transformed():
        outputs: tuple[Tensor, Tensor] = _Transformed.apply(*tensors, *settings)  # type: ignore[no-untyped-call]
        return outputs[0]
    learned = [tensor for tensor in tensors[:4] if tensor is not None]
    save = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in learned)
    outputs = _attention(*tensors, *settings, save)
    return outputs[0]


def _prepared(tensors: Sequence[Any], settings: Sequence[Any]) -> tuple[Indices, Operands]:
    """The index of a call's pattern, and what the kernel computes from: of a bias, the entries that an input of this
    length uses."""
    query, key, value, bias, lengths, seed, starts, keys = tensors
    digest, token, scale, dropout, packed = settings
    if query.ndim != 4:
        raise AttentionError(f"query has shape {list(query.shape)}; expected [batch, heads, n, head size]")
    longest = _longest(query, lengths) if packed else query.shape[2]
    indices = indices_for(starts, keys, digest, token, longest)
    if bias is not None and indices.origin is not None:
        bias = bias[..., indices.origin]
    return indices, Operands(query, key, value, bias, lengths, seed, scale, dropout, packed)


def _longest(query: Tensor, lengths: Tensor | None) -> int:
    """Tokens of the longest example of a packed row, which its lengths must fill."""
    if lengths is None or lengths.ndim != 1 or query.shape[0] != 1 or int(lengths.sum()) != query.shape[2]:
        raise AttentionError(
            f"a packed row has shape {list(query.shape)}, and its lengths do not add up to that; expected one row, and "
            "how many of its tokens belong to each example"
        )
    return int(lengths.max()) if len(lengths) else 0


_TENSORS = (
    "Tensor query, Tensor key, Tensor value, Tensor? bias, Tensor? lengths, Tensor? seed, Tensor starts, Tensor keys"
)
_SETTINGS = "str digest, bool token, float scale, float dropout, bool packed"


@torch.library.custom_op(
    "sparsebert::attention",
    mutates_args=(),
    device_types="cpu",
    schema=f"({_TENSORS}, {_SETTINGS}, bool save) -> (Tensor, Tensor)",
)
def _attention(*arguments: Any) -> tuple[Tensor, Tensor]:
    """The output, and the kept attention weights when they are to be saved for the gradient."""
    *settings, save = arguments[8:]
    return sparse_kernel.forward(*_prepared(arguments[:8], settings), save)


@torch.library.custom_op(
    "sparsebert::attention_backward",
    mutates_args=(),
    device_types="cpu",
    schema=f"(Tensor grad, {_TENSORS}, Tensor output, Tensor weights, {_SETTINGS}) -> (Tensor, Tensor, Tensor, Tensor)",
)
def _attention_backward(grad: Tensor, *arguments: Any) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The gradients of query, key, value and bias (empty where there is none)."""
    tensors, (output, weights), settings = arguments[:8], arguments[8:10], arguments[10:]
    indices, operands = _prepared(tensors, settings)
    if weights.numel() == 0:
        weights = sparse_kernel.forward(indices, operands, save=True)[1]
    *grads, grad_bias = sparse_kernel.backward(indices, operands, grad, output, weights)
    if grad_bias is None:
        return grads[0], grads[1], grads[2], weights.new_empty(0)
    if indices.origin is not None:
        grad_bias = torch.zeros_like(tensors[3]).index_copy_(-1, indices.origin, grad_bias)
    return grads[0], grads[1], grads[2], grad_bias


@_attention.register_fake
def _(*arguments: Any) -> tuple[Tensor, Tensor]:
    query, lengths, starts, packed, save = *(arguments[place] for place in (0, 4, 6)), *arguments[-2:]
    # How many entries an input of this length uses is for the kernel to say.
    examples = lengths.shape[0] if packed else query.shape[0]
    kept = torch.library.get_ctx().new_dynamic_size() if save else 0
    shape = weights_shape(examples, query.shape[1], starts.shape[0], kept) if save else (0,)
    return bert_layout(query), query.new_empty(shape, dtype=SUMS[query.dtype])


@_attention_backward.register_fake
def _(grad: Tensor, *arguments: Any) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    query, bias, weights = arguments[0], arguments[3], arguments[9]
    like_bias = weights.new_empty(0) if bias is None else bias.new_empty(bias.shape)
    return bert_layout(query), bert_layout(query), bert_layout(query), like_bias


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    ctx.settings = inputs[8:13]
    ctx.save_for_backward(*inputs[:8], *output)
    ctx.mark_non_differentiable(output[1])
    ctx.set_materialize_grads(False)


def _backward(ctx: Any, grad: Tensor | None, _: Tensor | None) -> tuple[Tensor | None, ...]:
    if grad is None:
        return (None,) * 14
    saved = ctx.saved_tensors  # once: what recomputes them does so at each reading
    # Under create_graph, and always inside torch.func, the gradient may be asked for a gradient of its own.
    gradient: Callable[..., Any] = _Gradient.apply if torch.is_grad_enabled() else _attention_backward
    grads = gradient(grad, *saved, *ctx.settings)
    return (*grads[:3], None if saved[3] is None else grads[3], *(None,) * 10)


_attention.register_autograd(_backward, setup_context=_setup_context)


def _one_by_one(
    operator: Callable[..., tuple[Tensor, ...]], info: Any, in_dims: tuple[int | None, ...], arguments: tuple[Any, ...]
) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
    """The rule of torch.func.vmap: a call for each element of the mapped dimension, as each has its own draws."""
    results = []
    for k in range(info.batch_size):
        pairs = zip(arguments, in_dims, strict=True)
        results.append(operator(*(each if dim is None else each.select(dim, k) for each, dim in pairs)))
    stacked = tuple(map(torch.stack, zip(*results, strict=True)))
    return stacked, (0,) * len(stacked)


class _Gradient(torch.autograd.Function):
    """The gradient where it may be differentiated again, which is refused only when it comes to that."""

    @staticmethod
    def forward(*arguments: Any) -> tuple[Tensor, ...]:
        grads: tuple[Tensor, ...] = _attention_backward(*arguments)
        return grads

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        """Nothing is kept: there is no way on from here."""

    @staticmethod
    def backward(ctx: Any, *_: Any) -> None:
        raise AttentionError(
            "backend 'sparse' has no second derivative; use backend='reference' to differentiate a gradient again"
        )

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *arguments: Any) -> tuple[Any, Any]:
        return _one_by_one(_Gradient.apply, info, in_dims, arguments)


class _Transformed(torch.autograd.Function):
    """The operator inside torch.func's transforms, which do not look into an operator's own gradient."""

    @staticmethod
    def forward(*arguments: Any) -> tuple[Tensor, Tensor]:
        outputs: tuple[Tensor, Tensor] = _attention(*arguments, True)
        return outputs

    setup_context = staticmethod(_setup_context)

    @staticmethod
    def backward(ctx: Any, grad: Tensor | None, _: Tensor | None) -> tuple[Tensor | None, ...]:
        return _backward(ctx, grad, None)[:13]

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *arguments: Any) -> tuple[Any, Any]:
        return _one_by_one(_Transformed.apply, info, in_dims, arguments)
