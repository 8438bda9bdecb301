"""What a task's head gives for a batch, and the loss of each item: one function for each, whatever the task."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from sparsebert.model.head_pooling import reads_first_token
from sparsebert.model.heads import segments
from sparsebert.tasks.encoding.sequences import Batch
from sparsebert.tasks.table import Kind


def run_head(model: Any, kind: Kind, batch: Batch, each: int = 1) -> Float[Tensor, "items ..."]:
    """Scores: [items, labels], [items, choices], [items] of a regression, or [items, n, 2] of spans."""
    return scores_of(kind, _run(model, kind, batch, each))


def run_head_and_layers(model: Any, kind: Kind, batch: Batch, each: int = 1) -> tuple[Tensor, Sequence[Tensor]]:
    """The scores, and the states after the embeddings and after each layer; of the last one what the head reads."""
    found = _run(model, kind, batch, each, output_hidden_states=True)
    return scores_of(kind, found), found.hidden_states


def _run(model: Any, kind: Kind, batch: Batch, each: int, **asked: bool) -> Any:
    shape = (-1, each, batch.input_ids.shape[1]) if kind == "choice" else batch.input_ids.shape
    first = first_token_only(model, lambda states: states[:, :1])
    with contextlib.nullcontext() if kind == "span" or not reads_first_token(model) else first:
        return model(
            input_ids=batch.input_ids.view(shape),
            attention_mask=batch.padding().view(shape),
            **segments(model, batch.token_type_ids.view(shape)),
            **asked,
        )


def scores_of(kind: Kind, found: Any) -> Float[Tensor, "items ..."]:
    if kind == "span":
        return torch.stack([found.start_logits, found.end_logits], dim=-1)
    logits: Tensor = found.logits
    return logits[:, 0] if kind == "regression" else logits


@contextlib.contextmanager
def first_token_only(model: Any, first: Callable[[Tensor], Tensor]) -> Iterator[None]:
    """Let the last layer go on with [CLS] alone once it has attended: its head reads no other token.

    Three quarters of the last layer's arithmetic is then done for one token instead of all, to the same result. A
    family whose layers are not made like BERT's does without, and so do int8 layers.
    """
    layers = getattr(getattr(model.base_model, "encoder", None), "layer", None)
    last = getattr(getattr(layers[-1], "attention", None), "output", None) if layers is not None else None
    if last is None:
        yield
        return
    hook = last.register_forward_pre_hook(lambda _, states: tuple(first(state) for state in states))
    try:
        yield
    finally:
        hook.remove()


def item_losses(
    kind: Kind, scores: Float[Tensor, "items ..."], labels: Tensor, batch: Batch
) -> Float[Tensor, " items"]:
    """Cross-entropy, or the squared error of a score."""
    if kind == "regression":
        return (scores - labels.to(scores.dtype)).square()
    if kind == "span":
        # Padding is no place to answer from; left in, it would tie the loss to the longest item of the batch.
        real = batch.padding().bool()[:, :, None]
        scores = scores.masked_fill(~real, float("-inf"))
        return F.cross_entropy(scores, labels, reduction="none").mean(dim=1)
    return F.cross_entropy(scores, labels, reduction="none")
