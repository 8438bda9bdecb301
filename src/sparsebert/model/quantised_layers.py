"""A BERT-like layer in int8: four calls of the kernel and attention.

hidden -> query, key, value -> attention -> + residual, norm -> codes -> GELU -> codes -> + residual, norm
"""

import sys
from typing import Any

import torch
from torch import Tensor, nn
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from sparsebert.errors import LayerError, ModelError
from sparsebert.layers import Norm, check_inference, linear
from sparsebert.model.plan import IMPLEMENTATION, plan_of

# Layers of one shape, known by name: those of RobertaPreLayerNorm have the same parts and another order.
BERT_LIKE = ("BertLayer", "RobertaLayer", "ElectraLayer", "XLMRobertaLayer", "CamembertLayer")
_FUSED_ACTIVATIONS = {"GELUActivation": "gelu", "ReLU": "relu"}


class BertLikeAttention:
    """Stands in for the forward of a self-attention: one product for query, key and value."""

    def __init__(self, module: Any) -> None:
        self.module = module

    def __call__(
        self, hidden_states: Tensor, attention_mask: Tensor | None = None, past_key_values: Any = None, **kwargs: Any
    ) -> tuple[Tensor, Tensor | None]:
        module = self.module
        if past_key_values is not None:
            raise ModelError("an int8 encoder has no use for past_key_values; leave the cache out")
        _require_inference(module, hidden_states)
        batch, n, _ = hidden_states.shape
        rows = linear(_rows(hidden_states), module.qkv.packed, dtype=attention_dtype(module)).values
        query, key, value = rows.view(batch, n, 3, module.num_attention_heads, module.attention_head_size).permute(
            2, 0, 3, 1, 4
        )
        eager = sys.modules[type(module).__module__].eager_attention_forward
        attention = ALL_ATTENTION_FUNCTIONS.get_interface(module.config._attn_implementation, eager)
        output, weights = attention(
            module, query, key, value, attention_mask, dropout=0.0, scaling=module.scaling, **kwargs
        )
        return output.reshape(batch, n, module.all_head_size), None if weights is None else weights.float()


class BertLikeLayer:
    """Stands in for the forward of a layer whose norms follow its residuals."""

    def __init__(self, layer: Any) -> None:
        self.layer = layer
        self.activation = fused_activation(layer)

    def __call__(
        self,
        hidden_states: Tensor,
        attention_mask: Tensor | None = None,
        encoder_hidden_states: Tensor | None = None,
        encoder_attention_mask: Tensor | None = None,
        past_key_values: Any = None,
        **kwargs: Any,
    ) -> Tensor:
        layer = self.layer
        attended, _ = layer.attention.self(
            hidden_states, attention_mask=attention_mask, past_key_values=past_key_values, **kwargs
        )
        first, second, up = layer.attention.output, layer.output, layer.intermediate.dense.packed
        between = linear(
            _rows(attended),
            first.dense.packed,
            residual=_rows(hidden_states),
            norm=norm_of(first.LayerNorm),
            codes=True,
        )
        if self.activation is not None:
            inner: Any = linear(between.codes, up, activation=self.activation, values=False, codes=True).codes
        else:
            inner = layer.intermediate.intermediate_act_fn(linear(between.codes, up).values)
        result = linear(inner, second.dense.packed, residual=between.values, norm=norm_of(second.LayerNorm)).values
        return result.view(hidden_states.shape)


def attention_dtype(module: Any) -> torch.dtype:
    """What query, key and value are rounded to: bfloat16 under a pattern, whose kernel adds up in float32 and waits for
    memory at long inputs; float32 for attention that is not ours, which may be slow in bfloat16."""
    plan = plan_of(module)
    is_ours = plan is not None and module.config._attn_implementation == IMPLEMENTATION and plan.gate is None
    sparse = plan is not None and (plan.backend == "sparse" or (plan.backend == "auto" and plan.pattern is not None))
    return torch.bfloat16 if is_ours and sparse else torch.float32


def fused_activation(layer: Any) -> str | None:
    """What the kernel has for the function between a layer's two large products; None: nothing."""
    return _FUSED_ACTIVATIONS.get(type(layer.intermediate.intermediate_act_fn).__name__)


def _rows(tensor: Tensor) -> Tensor:
    return tensor.reshape(-1, tensor.shape[-1])


def norm_of(norm: nn.LayerNorm) -> Norm:
    return Norm(norm.weight, norm.bias, norm.eps)


def _require_inference(module: nn.Module, hidden_states: Tensor) -> None:
    if module.training:
        raise LayerError("int8 layers do not train; call model.eval(), or train in float32 and quantise afterwards")
    check_inference(hidden_states)
