"""FlexAttention for GPUs: the pattern as a BlockMask, whole blocks of 128 x 128 skipped where nothing is kept.

Forward and backward on CUDA. On the CPU FlexAttention has no backward and is here for tests of the forward only.
The BlockMask looks entries up in a dense bool tensor, so this backend costs heads x n² bytes of GPU memory.
"""

import warnings
from functools import lru_cache
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from sparsebert.attention.inputs import Inputs
from sparsebert.errors import AttentionError
from sparsebert.patterns import Pattern


def attend_flex(inputs: Inputs) -> Float[Tensor, "batch heads n d"]:
    if inputs.gate is not None or inputs.bias is not None or inputs.dropout > 0:
        raise AttentionError("backend 'flex' takes no gate, no bias and no dropout; use another backend")
    learns = torch.is_grad_enabled() and any(t.requires_grad for t in (inputs.query, inputs.key, inputs.value))
    if inputs.query.device.type != "cuda" and learns:
        raise AttentionError(
            f"backend 'flex' has a gradient on CUDA only and query is on {inputs.query.device}; use 'sparse' or 'sdpa'"
        )
    blocks = block_mask(inputs)
    output: Tensor = _flex(inputs.query.device.type)(
        inputs.query, inputs.key, inputs.value, block_mask=blocks, scale=inputs.scale
    )
    # A query with nothing to attend to is not promised to give zeros: make it so.
    empty = _empty_queries(inputs)
    return output if empty is None else output.masked_fill(empty, 0.0)


def block_mask(inputs: Inputs) -> Any:
    """The pattern, cropped, anchored and without padding, as FlexAttention's BlockMask."""
    from torch.nn.attention.flex_attention import create_block_mask

    batch, heads, n, _ = inputs.query.shape
    one_head = inputs.pattern is None or inputs.pattern.heads == 1
    return create_block_mask(
        _kept(inputs),
        B=None if inputs.lengths is None else batch,
        H=None if one_head else heads,
        Q_LEN=n,
        KV_LEN=n,
        device=inputs.query.device,
    )


def _kept(inputs: Inputs) -> Any:
    """mask_mod(batch, head, query, key) in FlexAttention's terms."""
    device, n = inputs.query.device, inputs.length
    keep = None if inputs.pattern is None else _dense_keep(inputs.pattern, device)
    lengths = None if inputs.lengths is None else inputs.lengths.to(device)
    last = n if keep is None else keep.shape[-1]

    def place(position: Tensor, real: Tensor | int) -> Tensor:
        return torch.where(position == real - 1, last - 1, position) if inputs.anchored_to_token else position

    def kept(batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        real: Tensor | int = n if lengths is None else lengths[batch]
        inside = (query < real) & (key < real)
        if keep is None:
            return inside
        return inside & keep[head if keep.shape[0] > 1 else 0, place(query, real), place(key, real)]

    return kept


def _empty_queries(inputs: Inputs) -> Bool[Tensor, "batch_or_1 heads_or_1 n 1"] | None:
    if inputs.pattern is None and inputs.lengths is None:
        return None
    kept, n, device = _kept(inputs), inputs.length, inputs.query.device
    batch = torch.arange(1 if inputs.lengths is None else inputs.query.shape[0], device=device)
    head = torch.arange(1 if inputs.pattern is None else inputs.pattern.heads, device=device)
    at = torch.arange(n, device=device)
    every: Tensor = kept(
        batch[:, None, None, None], head[None, :, None, None], at[None, None, :, None], at[None, None, None]
    )
    return ~every.expand(len(batch), len(head), n, n).any(-1, keepdim=True)


@lru_cache(maxsize=4)
def _dense_keep(pattern: Pattern, device: torch.device) -> Bool[Tensor, "heads n n"]:
    return pattern.keep().to(device)


@lru_cache(maxsize=2)
def _flex(device: str) -> Any:
    from torch.nn.attention.flex_attention import flex_attention

    if device == "cuda":
        return torch.compile(flex_attention)

    def eager(*arguments: Any, **settings: Any) -> Any:
        with warnings.catch_warnings():  # it warns that it is slow without a compiler
            warnings.simplefilter("ignore")
            return flex_attention(*arguments, **settings)

    return eager
