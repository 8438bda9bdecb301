"""Packed rows: one example's tokens after another's in a single row without padding.

Everything but attention works token by token and needs no more than positions that start anew. Attention is told where
each example begins, in transformers' own words for it (cu_seq_lens), as its DataCollatorWithFlattening makes them.
"""

from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from sparsebert.errors import ModelError
from sparsebert.model.plan import plan_of
from sparsebert.model.positions import packed_positions
from sparsebert.model.probe import probe, require_same


def packed_inputs(
    model: Any,
    ids: Int[Tensor, " tokens"],
    lengths: Int[Tensor, " examples"],
    token_type_ids: Int[Tensor, " tokens"] | None = None,
) -> dict[str, Any]:
    """What a model is called with for examples that lie one after another; its states are [1, tokens, width].

    token_type_ids: for a family that tells two texts apart.
    """
    bounds = torch.nn.functional.pad(lengths.cumsum(0), (1, 0)).to(torch.int32)
    longest = int(lengths.max())
    inputs = {
        "input_ids": ids[None],
        "position_ids": packed_positions(model, ids, lengths)[None],
        **{f"cu_seq_lens_{side}": bounds for side in "qk"},
        **{f"max_length_{side}": longest for side in "qk"},
    }
    return inputs if token_type_ids is None else inputs | {"token_type_ids": token_type_ids[None]}


def packing_obstacle(model: Any) -> str | None:
    """Why a model's rows are to be padded; None: it takes packed ones, to the same states, as a few tokens showed."""
    plan, device = plan_of(model), next(model.parameters()).device
    if plan is None:
        return "it runs attention of its own"
    if plan.gate is not None:
        return "a gate is being learned in it"
    if device.type != "cpu":
        return f"it is on {device}, where attention takes padded batches"
    try:
        require_same(probe(model), probe(model, packed_inputs))
    except (ModelError, RuntimeError, TypeError, KeyError, ValueError, IndexError) as error:
        return f"{type(model).__name__} gives other states for packed rows: {error}"
    return None


def first_tokens(states: Tensor, lengths: Int[Tensor, " examples"]) -> Tensor:
    """Of the states [1, tokens, width] of a packed row those of each example's first token, [examples, 1, width]."""
    return states[0, lengths.cumsum(0) - lengths][:, None]
