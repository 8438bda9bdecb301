"""Attention over a pattern on a GPU: Triton kernels as a torch operator with a gradient.

attend_triton(inputs) -> torch.library operator -> triton_launch -> triton_tiles, triton_pieces

The triton package is imported by the first call and by nothing else. Triton's interpreter (TRITON_INTERPRET=1) runs
the same kernels on CPU tensors, slowly: that is how they are tested without a GPU.
"""

import os
from importlib.util import find_spec
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from sparsebert.attention.inputs import Inputs, bert_layout, is_forward_mode
from sparsebert.attention.triton_index import find, name_of
from sparsebert.errors import AttentionError
from sparsebert.patterns import Pattern

INTERPRETER_VARIABLE = "TRITON_INTERPRET"  # Triton's own
IS_INSTALLED = find_spec("triton") is not None
_TYPES = (torch.float32, torch.float16, torch.bfloat16)
_WIDEST = 128  # head size


def obstacle(query: Tensor) -> str | None:
    """Why the kernels cannot serve this input, as a clause; None where they can."""
    if query.device.type != "cuda" and not _interprets():
        return f"query is on {query.device}, and Triton's kernels run on CUDA"
    if not IS_INSTALLED:
        return "the triton package is not installed"
    if query.dtype not in _TYPES:
        return f"query is {query.dtype}, and the kernels take float32, float16 and bfloat16"
    if query.shape[-1] > _WIDEST:
        return f"the head size is {query.shape[-1]}, and the kernels take at most {_WIDEST}"
    return None


def attend_triton(inputs: Inputs) -> Float[Tensor, "batch heads n d"]:
    if inputs.gate is not None:
        raise AttentionError("backend 'triton' takes no gate; use backend='gated', or a bias per kept entry")
    if is_forward_mode(inputs):
        raise AttentionError(
            "backend 'triton' has no forward-mode derivative; use backend='reference', or reverse mode"
        )
    reason = obstacle(inputs.query)
    if reason is not None:
        raise AttentionError(
            f"backend 'triton' cannot serve this input: {reason}; install sparsebert[gpu] and move the tensors to a "
            "GPU, or use backend='auto'"
        )
    query = inputs.query
    seed = inputs.drawn_seed()
    output: Tensor = _attention(
        query,
        inputs.key,
        inputs.value,
        None if inputs.bias is None else inputs.bias.float(),
        None if inputs.lengths is None else inputs.lengths.to(query.device, torch.int64),
        None if seed is None else seed.to(query.device),
        _name(inputs.pattern_or_full(), inputs.length, query.device),
        float(inputs.scale),
        float(inputs.dropout),
    )[0]
    return output


def _interprets() -> bool:
    return os.environ.get(INTERPRETER_VARIABLE) == "1"


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def _name(pattern: Pattern, length: int, device: torch.device) -> str:
    """The name of a pattern's index, which exists from here on; a constant to a compiled graph."""
    name = name_of(pattern, length, device)
    find(name)
    return name


_TENSORS = "Tensor query, Tensor key, Tensor value, Tensor? bias, Tensor? lengths, Tensor? seed"
_SETTINGS = "str index, float scale, float dropout"


@torch.library.custom_op(
    "sparsebert::triton_attention", mutates_args=(), schema=f"({_TENSORS}, {_SETTINGS}) -> (Tensor, Tensor)"
)
def _attention(*arguments: Any) -> tuple[Tensor, Tensor]:
    """The output, and the log of each row's sum of exponentials."""
    from sparsebert.attention.triton_launch import forward

    *tensors, index, scale, dropout = arguments
    return forward(find(index), _tensors(*tensors), scale, dropout)


@torch.library.custom_op(
    "sparsebert::triton_attention_backward",
    mutates_args=(),
    schema=f"(Tensor grad, {_TENSORS}, Tensor output, Tensor logsums, {_SETTINGS}) -> (Tensor, Tensor, Tensor, Tensor)",
)
def _attention_backward(grad: Tensor, *arguments: Any) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The gradients of query, key, value and bias (empty where there is none)."""
    from sparsebert.attention.triton_launch import backward

    *given, output, logsums, index, scale, dropout = arguments
    tensors, bias = _tensors(*given), given[3]
    tensors |= {"output": _joined(output), "grad": _joined(grad), "logsums": logsums.contiguous()}
    grads, slopes = backward(find(index), tensors, scale, dropout)
    if bias is None or slopes is None:
        return grads[0], grads[1], grads[2], logsums.new_empty(0)
    return grads[0], grads[1], grads[2], slopes.sum(tuple(range(slopes.ndim - bias.ndim)))


@_attention.register_fake
def _(query: Tensor, *_: Any) -> tuple[Tensor, Tensor]:
    return bert_layout(query), query.new_empty(query.shape[:3], dtype=torch.float32)


@_attention_backward.register_fake
def _(grad: Tensor, *arguments: Any) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    query, bias, logsums = arguments[0], arguments[3], arguments[7]
    like_bias = logsums.new_empty(0 if bias is None else bias.shape)
    return bert_layout(query), bert_layout(query), bert_layout(query), like_bias


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    ctx.save_for_backward(*inputs[:6], *output)
    ctx.settings = inputs[6:]
    ctx.index = find(inputs[6])  # kept alive until the gradient is taken
    ctx.mark_non_differentiable(output[1])
    ctx.set_materialize_grads(False)


def _backward(ctx: Any, grad: Tensor | None, _: Tensor | None) -> tuple[Tensor | None, ...]:
    if grad is None:
        return (None,) * 9
    saved = ctx.saved_tensors  # asked for once: a checkpointed layer makes them again at the first request alone
    grads = _attention_backward(grad, *saved, *ctx.settings)
    return (*grads[:3], None if saved[3] is None else grads[3], *(None,) * 5)


_attention.register_autograd(_backward, setup_context=_setup_context)


def _tensors(
    query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None, lengths: Tensor | None, seed: Tensor | None
) -> dict[str, Tensor | None]:
    """What the kernels read, query, key and value with the same strides: as they lie, where they lie alike."""
    three = [query, key, value]
    if any(one.stride() != query.stride() for one in three) or query.stride(-1) != 1:
        three = [_joined(one) for one in three]
    others = (None if one is None else one.contiguous() for one in (bias, lengths, seed))
    return dict(zip(("query", "key", "value", "bias", "lengths", "seed"), (*three, *others), strict=True))


def _joined(tensor: Tensor) -> Tensor:
    """In the memory layout that BERT joins its heads in: the tensor itself where it is, else a copy."""
    return tensor.transpose(1, 2).contiguous().transpose(1, 2)
