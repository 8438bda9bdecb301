"""What a task's head gives for rows without padding: the same scores, item by item."""

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sparsebert.errors import ModelError
from sparsebert.model.heads import segments
from sparsebert.model.packing import first_tokens, packed_inputs, packing_obstacle
from sparsebert.model.probe import require_same
from sparsebert.tasks.encoding.sequences import Batch
from sparsebert.tasks.heads import first_token_only, run_head, scores_of
from sparsebert.tasks.table import Kind


def run_head_packed(model: Any, kind: Kind, batch: Batch) -> list[Float[Tensor, "..."]]:
    """The scores of each item; not for choices, several of which are one item."""
    real = batch.padding().bool()
    types = segments(model, batch.token_type_ids[real])
    inputs = packed_inputs(model, batch.input_ids[real], batch.lengths, **types)
    if kind == "span":
        return list(scores_of(kind, model(**inputs))[0].split_with_sizes(batch.lengths.tolist()))
    with first_token_only(model, lambda states: first_tokens(states, batch.lengths)), _apart(model, batch.lengths):
        return list(scores_of(kind, model(**inputs)))


@torch.no_grad()
def head_packing_obstacle(model: Any, kind: Kind) -> str | None:
    """Why a head's rows are to be padded; None: it gives the same scores for packed ones, as two short rows showed."""
    if kind == "choice":
        return "the choices of an item are told apart by their rows"
    obstacle = packing_obstacle(model)
    if obstacle is not None:
        return obstacle
    ids = torch.randint(5, int(model.config.vocab_size), (2, 7), generator=torch.Generator().manual_seed(0))
    batch = Batch(ids, torch.zeros_like(ids), torch.tensor([7, 5]))
    try:
        packed, padded = run_head_packed(model, kind, batch), list(run_head(model, kind, batch))
        if kind == "span":
            padded = [row[: len(own)] for row, own in zip(padded, packed, strict=True)]
        require_same(padded, packed)
    except (ModelError, RuntimeError, TypeError, KeyError, ValueError, IndexError) as error:
        return f"the head of {type(model).__name__} gives other scores for packed rows: {error}"
    return None


@contextlib.contextmanager
def _apart(model: Any, lengths: Int[Tensor, " items"]) -> Iterator[None]:
    """Have poolers and heads find each item's first token in a row of its own, where the layers left a packed row."""
    base, tokens = model.base_model, int(lengths.sum())
    layers = getattr(base, "encoder", None) or getattr(base, "transformer", None) or base

    def unpack(_: Any, __: Any, output: Any) -> Any:
        states = output["last_hidden_state"]
        if tuple(states.shape[:2]) == (1, tokens):
            output["last_hidden_state"] = first_tokens(states, lengths)
        return output

    hook = layers.register_forward_hook(unpack)
    try:
        yield
    finally:
        hook.remove()
