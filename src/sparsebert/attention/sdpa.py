"""torch's scaled_dot_product_attention, given the pattern as a bool tensor: dense cost, sparse meaning."""

from functools import lru_cache

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes

from sparsebert.attention.inputs import Inputs
from sparsebert.errors import AttentionError
from sparsebert.patterns import Pattern


def attend_sdpa(inputs: Inputs) -> Float[Tensor, "batch heads n d"]:
    if inputs.gate is not None or inputs.bias is not None:
        raise AttentionError("backend 'sdpa' takes no gate and no bias; use backend='auto' or 'reference'")
    allowed = _allowed(inputs)
    if allowed is None:
        return _dense(inputs, None)
    # A query with nothing to attend to would give NaN: let it attend to all, then set its output to zero.
    empty = ~allowed.any(-1, keepdim=True)
    output = _dense(inputs, allowed | empty)
    output = output.masked_fill(empty, 0.0)
    padded = inputs.padded()
    return output if padded is None else output.masked_fill(padded[:, None, :, None], 0.0)


def _dense(inputs: Inputs, allowed: Bool[Tensor, "..."] | None) -> Float[Tensor, "batch heads n d"]:
    return torch.nn.functional.scaled_dot_product_attention(
        inputs.query, inputs.key, inputs.value, attn_mask=allowed, dropout_p=inputs.dropout, scale=inputs.scale
    )


def _allowed(inputs: Inputs) -> Bool[Tensor, "batch_or_1 heads_or_1 n_or_1 n"] | None:
    """Kept by the pattern and key real; None where nothing is excluded, so that SDPA stays on its fast path."""
    pattern, padded, n, device = inputs.pattern, inputs.padded(), inputs.length, inputs.query.device
    real = None if padded is None else ~padded[:, None, None, :]
    if pattern is None or inputs.keeps_everything:
        return real
    if pattern.anchor == "token" and (real is not None or n < pattern.length):
        keep = inputs.anchored(_dense_keep(pattern, pattern.length, device))
    else:
        keep = _dense_keep(pattern, n, device)[None]
    return keep if real is None else keep & real


def _dense_keep(pattern: Pattern, n: int, device: torch.device) -> Bool[Tensor, "heads n n"]:
    if torch.compiler.is_compiling():
        (whole,) = _constants(pattern)
        corner: Tensor = whole.to(device)[:, :n, :n]
        return corner
    return _corner(pattern, n, device)


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def _constants(pattern: Pattern) -> tuple[Tensor]:
    """What a graph holds of a pattern, the same objects for every layer (in a tuple: a graph names tensors once)."""
    return _whole_keep(pattern)


@lru_cache(maxsize=4)
def _whole_keep(pattern: Pattern) -> tuple[Bool[Tensor, "heads n n"]]:
    # Real numbers, whatever the graph is traced with; and such as can be trained with, whoever asked first.
    with _disable_current_modes(), torch.inference_mode(False):
        return (pattern.keep(),)


@lru_cache(maxsize=4)
def _corner(pattern: Pattern, n: int, device: torch.device) -> Bool[Tensor, "heads n n"]:
    with torch.inference_mode(False):  # what is kept may be trained with later
        return pattern.keep()[:, :n, :n].contiguous().to(device)
