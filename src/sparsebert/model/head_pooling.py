"""How the states of a text become one, and which one a head for whole texts reads: the first token's, or the mean.

The configuration says which (head_pooling), so that a saved model reads what it was trained to read. Only what the head
is handed changes: BERT's pooler, RoBERTa's classifier and their like work on the mean as they would on the first token.
"""

from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sparsebert.errors import ModelError

Pooling = Literal["mean", "cls"]
_WHOLE_TEXT = ("ForSequenceClassification", "ForMultipleChoice")  # how transformers names such classes
HEADS_OF_WHOLE_TEXTS = ("sequence_classification", "multiple_choice")
_OWN_FIELD = "classifier_pooling"  # of families that offer the choice themselves


def pooled(
    states: Float[Tensor, "rows n width"], real: Float[Tensor, "rows n"], pooling: Pooling
) -> Float[Tensor, "rows width"]:
    """The mean of the tokens that are there, or the first one."""
    if pooling == "cls":
        return states[:, 0]
    weights = real / real.sum(1, keepdim=True).clamp(min=1)
    return (states * weights[..., None]).sum(1)


def pooled_packed(
    states: Float[Tensor, "tokens width"], lengths: Int[Tensor, " rows"], pooling: Pooling
) -> Float[Tensor, "rows width"]:
    """The same of rows that lie one after another without padding."""
    if pooling == "cls":
        return states[lengths.cumsum(0) - lengths]
    return torch.stack([row.mean(0) for row in states.split_with_sizes(lengths.tolist())])


def check_head_pooling(pooling: Any) -> None:
    """Refuse what is no way to read a text."""
    if pooling not in (None, "mean", "cls"):
        raise ModelError(f"head_pooling is {pooling!r}; expected 'mean', 'cls', or None for what the family does")


def reads_first_token(model: Any) -> bool:
    """Whether the head of a whole text reads no other token, as far as is known."""
    return getattr(model.config, "head_pooling", None) != "mean"


def install_head_pooling(model: Any) -> None:
    """Let a head for whole texts read what the configuration asks for; other heads read what they always do."""
    config = model.config
    if config.head_pooling is None or not type(model).__name__.endswith(_WHOLE_TEXT):
        return
    if hasattr(config, _OWN_FIELD) and type(model).__name__.endswith(_WHOLE_TEXT[0]):
        setattr(config, _OWN_FIELD, config.head_pooling)
    elif config.head_pooling == "mean":
        model.base_model.register_forward_hook(_hand_over_mean, with_kwargs=True)


def _hand_over_mean(base: Any, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> Any:
    states: Tensor = output["last_hidden_state"]
    given = kwargs.get("attention_mask", args[1] if len(args) > 1 else None)
    real = states.new_ones(states.shape[:2]) if given is None else given.to(states.dtype)
    mean = pooled(states, real, "mean")[:, None]  # a text of one token, the first
    if getattr(base, "pooler", None) is not None:
        output["pooler_output"] = base.pooler(mean)
    else:
        output["last_hidden_state"] = mean
    return output
