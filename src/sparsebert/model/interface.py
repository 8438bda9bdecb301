"""The bridge to transformers: an attention function and the padding function that belongs to it.

A name registered as attention alone is handed no padding at all, silently; so both are registered under one name.
What transformers calls an attention mask is, between these two functions, a tensor of lengths.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface

from sparsebert.attention import Gate as GateValues
from sparsebert.attention import Inputs, attend
from sparsebert.attention.reference import attention_weights
from sparsebert.errors import ModelError
from sparsebert.gates import Gate
from sparsebert.patterns import Pattern, window

IMPLEMENTATION = "sparsebert"
_PLAN = "sparse_plan"


@dataclass
class Plan:
    """What the attention modules of one model share; change it and every layer changes."""

    pattern: Pattern | None = None  # None: everyone attends to everyone
    backend: str = "auto"
    gate: Gate | None = None  # a pattern being learned, which every layer asks for its sample


def give_plan(model: nn.Module, plan: Plan) -> int:
    """Hand the plan to every attention module; how many there were."""
    modules = [module for module in model.modules() if type(module).__name__.endswith("Attention")]
    for module in modules:
        setattr(module, _PLAN, plan)
    return len(modules)


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
    plan = getattr(module, _PLAN, None)
    if plan is None:
        raise ModelError(
            f"{type(module).__name__} runs attention 'sparsebert' without a pattern; call sparsify(model, pattern)"
        )
    if attention_mask is not None and attention_mask.ndim != 1:
        raise ModelError(
            f"padding came as a tensor of shape {tuple(attention_mask.shape)}; "
            "pass attention_mask [batch, n], ones and then zeros in each row"
        )
    pattern = plan.pattern if sliding_window is None else _within(plan.pattern, query.shape[2], sliding_window - 1)
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


def padding_as_lengths(
    batch_size: int, q_length: int, kv_length: int, attention_mask: Tensor | None = None, **_: Any
) -> Int[Tensor, " batch"] | None:
    """Real tokens of each example; None where there is no padding."""
    if q_length != kv_length:
        raise ModelError(f"{q_length} queries meet {kv_length} keys; only self-attention of an encoder has a pattern")
    if attention_mask is None:
        return None
    real = attention_mask.bool()
    lengths = real.sum(-1)
    if torch.compiler.is_compiling():
        return lengths
    if not torch.equal(real, torch.arange(kv_length, device=real.device) < lengths[:, None]):
        raise ModelError("attention_mask is not a run of ones followed by zeros in every row; pad on the right")
    return None if bool((lengths == kv_length).all()) else lengths


@lru_cache(maxsize=8)
def _within(pattern: Pattern | None, length: int, radius: int) -> Pattern:
    """Layers of a model that look only so far keep doing so."""
    reach = window(length if pattern is None else pattern.length, radius=radius)
    if pattern is None:
        return reach
    return pattern & reach.anchored(pattern.anchor)


AttentionInterface.register(IMPLEMENTATION, sparse_attention)
AttentionMaskInterface.register(IMPLEMENTATION, padding_as_lengths)
