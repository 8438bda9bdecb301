"""The bridge to transformers: the attention function that every layer of a sparse model calls.

A name registered as attention alone is handed no padding at all, silently; so the padding function of
padding.py is registered with it. What transformers calls an attention mask is, between the two, a tensor of lengths.
"""

from typing import Any

from torch import Tensor, nn

from sparsebert.attention import Inputs, attend_checked, checked_inputs
from sparsebert.attention.reference import attention_weights
from sparsebert.errors import ModelError
from sparsebert.model.long_inputs import Attended, attend_by_length, attend_packed_by_length, follows, reach_of
from sparsebert.model.plan import plan_of


def sparse_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    sliding_window: int | None = None,
    cu_seq_lens_q: Tensor | None = None,
    **kwargs: Any,
) -> tuple[Tensor, Tensor | None]:
    """What transformers calls in every layer."""
    plan = plan_of(module)
    if plan is None:
        raise ModelError(
            f"{type(module).__name__} runs attention 'sparsebert' without a pattern; call sparsify(model, pattern)"
        )
    if attention_mask is not None and attention_mask.ndim != 1:
        raise ModelError(
            f"padding came as a tensor of shape {tuple(attention_mask.shape)}; "
            "pass attention_mask [batch, n], ones and then zeros in each row"
        )
    shares = None if cu_seq_lens_q is None else shares_of(cu_seq_lens_q, attention_mask, kwargs)
    longest = query.shape[2] if shares is None else int(shares.max())

    def attend(query: Tensor, key: Tensor, value: Tensor, lengths: Tensor | None, length: int) -> Attended:
        under = plan.arguments(module, sliding_window, length)
        inputs = checked_inputs(query, key, value, under, lengths, dropout, scaling, shares is not None)
        output = attend_checked(inputs, plan.backend if plan.gate is None else "auto")
        weights = attention_weights(inputs) if kwargs.get("output_attentions") else None  # these are never dropped out
        return output, weights

    pattern = plan.pattern if plan.gate is None else None
    if pattern is not None and follows(pattern, longest):
        if shares is None:
            output, weights = attend_by_length(attend, pattern, query, key, value, attention_mask)
        else:
            output, weights = attend_packed_by_length(attend, pattern, query, key, value, shares)
    else:
        output, weights = attend(query, key, value, attention_mask if shares is None else shares, longest)
    return output.transpose(1, 2), weights


def attention_inputs(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    padding: Tensor | None,
    shares: Tensor | None,
    scaling: float,
) -> Inputs | None:
    """What attention of a layer in inference comes to, if that is one call; None where rows need several patterns."""
    plan, n = plan_of(module), query.shape[2]
    assert plan is not None
    lengths = padding if shares is None else shares
    own = [n] if lengths is None else lengths.tolist()
    reach = longest = n if shares is None else max(own)
    if plan.pattern is not None and follows(plan.pattern, longest):
        reach, *others = {reach_of(plan.pattern, length) for length in own}
        if others or (shares is None and reach < n):
            return None
    under = plan.arguments(module, None, reach)
    return checked_inputs(query, key, value, under, lengths, 0.0, scaling, shares is not None)


def shares_of(bounds: Tensor, padding: Tensor | None, kwargs: dict[str, Any]) -> Tensor:
    """Tokens of each example of a packed row."""
    if padding is not None or bounds.ndim != 1 or len(bounds) < 2:
        raise ModelError(
            f"cu_seq_lens_q has shape {tuple(bounds.shape)}, with {'no padding' if padding is None else 'padding'}; "
            "a packed row has none, and bounds [examples + 1] that begin at 0"
        )
    if kwargs.get("output_attentions"):
        raise ModelError("attention weights of a packed row were asked for; pass padded rows to get them")
    return bounds.diff().long()
