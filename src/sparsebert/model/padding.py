"""Padding as transformers tells it, 0 or 1 a token, turned into what every backend takes: real tokens an example.

The check is an operator of its own, so that it is part of every graph: a compiled, exported or traced model refuses
the same padding that the model itself refuses.
"""

from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from sparsebert.errors import ModelError


def padding_as_lengths(
    batch_size: int, q_length: int, kv_length: int, attention_mask: Tensor | None = None, **_: Any
) -> Int[Tensor, " batch"] | None:
    """Real tokens of each example; None where there is no padding."""
    if attention_mask is None:
        if q_length != kv_length:
            raise ModelError(f"{q_length} queries meet {kv_length} keys; only self-attention has a pattern")
        return None
    if tuple(attention_mask.shape) != (batch_size, q_length):
        raise ModelError(
            f"attention_mask has shape {tuple(attention_mask.shape)}; expected {(batch_size, q_length)}, a 1 for each "
            "token and then a 0 for each place of padding"
        )
    lengths: Tensor = torch.ops.sparsebert.real_tokens(attention_mask.bool())
    # Whether there is padding may be looked at only where the answer is not written into a graph.
    if torch.compiler.is_compiling() or torch._C._get_tracing_state() is not None:
        return lengths
    return None if bool((lengths == q_length).all()) else lengths


@torch.library.custom_op("sparsebert::real_tokens", mutates_args=())
def real_tokens(real: Tensor) -> Tensor:
    """How many ones each row starts with; raises where another one follows a zero."""
    lengths = real.sum(-1)
    if not torch.equal(real, torch.arange(real.shape[1], device=real.device) < lengths[:, None]):
        raise ModelError(
            "attention_mask is not a run of ones followed by zeros in every row; pad on the right "
            "(tokenizer.padding_side = 'right')"
        )
    return lengths


@real_tokens.register_fake
def _(real: Tensor) -> Tensor:
    return real.new_empty(real.shape[0], dtype=torch.int64)
