"""What training asks of a model without knowing its family: inputs it takes, its head's scores, its pattern."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from sparsebert.batches import TextBatch
from sparsebert.errors import ModelError
from sparsebert.model.conversion import sparsify
from sparsebert.model.plan import pattern_of as pattern_of
from sparsebert.patterns import Pattern


def require_word_head(model: Any) -> None:
    """Refuse a model that scores no words."""
    if model.get_output_embeddings() is None:
        raise ModelError(f"{type(model).__name__} has no head that predicts words; load the model with its MLM head")


def encoder_inputs(model: Any, batch: TextBatch) -> dict[str, Tensor]:
    """A batch as a model takes it, on the model's device."""
    device = next(model.parameters()).device
    lengths = batch.lengths.to(device)
    real = (torch.arange(batch.input_ids.shape[1], device=device) < lengths[:, None]).long()
    ids = {"input_ids": batch.input_ids.to(device), "attention_mask": real}
    return {**ids, **segments(model, batch.token_type_ids.to(device))}


def segments(model: Any, token_type_ids: Tensor) -> dict[str, Tensor]:
    """The argument that tells the two texts of a pair apart, for families that tell them apart at all."""
    return {"token_type_ids": token_type_ids} if getattr(model.config, "type_vocab_size", 0) > 1 else {}


@contextlib.contextmanager
def encoder_states_changed(
    model: Any, change: Callable[[Float[Tensor, "rows n width"]], Float[Tensor, "some places width"]]
) -> Iterator[None]:
    """Within the block the model's head sees changed states of the encoder, such as those of a few places only."""

    def replace(_: Any, __: Any, output: Any) -> Any:
        output["last_hidden_state"] = change(output["last_hidden_state"])
        return output

    hook = model.base_model.register_forward_hook(replace)
    try:
        yield
    finally:
        hook.remove()


def give_pattern(model: Any, pattern: Pattern) -> Any:
    """Run, and save, under this pattern from now on; returns the model."""
    return sparsify(model, pattern)
