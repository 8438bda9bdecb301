"""The bridge to transformers: the attention function that every layer of a sparse model calls.

A name registered as attention alone is handed no padding at all, silently; so the padding function of
padding.py is registered with it. What transformers calls an attention mask is, between the two, a tensor of lengths.
"""

from typing import Any

from torch import Tensor, nn

from sparsebert.attention import Gate as GateValues
from sparsebert.attention import Inputs, attend
from sparsebert.attention.reference import attention_weights
from sparsebert.errors import ModelError
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
    pattern = plan.in_use_within(sliding_window, query.shape[2])
    settings: dict[str, Any] = {"pattern": pattern, "lengths": attention_mask, "dropout": dropout, "scale": scaling}
    if plan.gate is not None:
        settings |= plan.gate.attention_arguments(pattern)
    output = attend(query, key, value, backend=plan.backend if plan.gate is None else "auto", **settings)
    weights = attention_weights(_inputs(query, key, value, settings)) if kwargs.get("output_attentions") else None
    return output.transpose(1, 2), weights


def _inputs(query: Tensor, key: Tensor, value: Tensor, settings: dict[str, Any]) -> Inputs:
    """The same arguments for whoever asks to see the weights; these are never dropped out."""
    scale = query.shape[-1] ** -0.5 if settings["scale"] is None else settings["scale"]
    gate = settings.get("gate")
    values = None if gate is None else GateValues(gate, settings["relaxation"], settings["c"])
    return Inputs(query, key, value, settings["pattern"], settings["lengths"], 0.0, scale, settings.get("bias"), values)
