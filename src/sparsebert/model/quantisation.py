"""quantize(): the linear layers of an encoder in int8, in place; a BERT-like layer runs as four calls of the kernel.

hidden -> query, key, value -> attention -> + residual, norm -> codes -> GELU -> codes -> + residual, norm
"""

import sys
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from sparsebert.errors import LayerError, ModelError
from sparsebert.layers import Int8Linear, Norm, check_inference, joined, linear, require_kernel
from sparsebert.layers.bfloat16 import require_fast_bfloat16
from sparsebert.model.plan import check_no_gate, plan_of
from sparsebert.model.probe import check_family
from sparsebert.model.quantised_saving import SaveQuantised

# Layers of one shape, known by name: those of RobertaPreLayerNorm have the same parts and another order.
_BERT_LIKE = ("BertLayer", "RobertaLayer", "ElectraLayer", "XLMRobertaLayer", "CamembertLayer")
_FUSED_ACTIVATIONS = {"GELUActivation": "gelu", "ReLU": "relu"}


def quantize(model: Any) -> Any:
    """Give the layers of the model's encoder int8 weights, in place; returns the model, in evaluation mode.

    From now on it is for inference alone, on the CPU. Embeddings, norms, attention and heads stay in float32. A model
    that is to have a pattern gets it before: sparsify() proves that it changes nothing else, to more digits than int8
    has.
    """
    check_family(model)
    check_no_gate(plan_of(model))
    require_kernel()
    if is_quantised(model):
        raise ModelError(f"this {type(model).__name__} is int8 already; quantise the float32 model it was made from")
    found = {parameter.dtype for parameter in model.parameters()} - {torch.float32}
    if found or any(parameter.device.type != "cpu" for parameter in model.parameters()):
        raise ModelError(
            f"{type(model).__name__} is not float32 on the CPU as a whole; call model.float().cpu() before quantize"
        )
    made = {place: Int8Linear.of(layer) for place, layer in _linear_layers(model)}
    put_layers(model, made)
    return model.eval().requires_grad_(False)


def to_bfloat16(model: Any) -> Any:
    """Convert the weights of the model to bfloat16 once, in place; returns the model, in evaluation mode.

    Sums stay in float32. No autocast is needed, and none of its conversions take time.
    """
    if is_quantised(model):
        raise ModelError(f"this {type(model).__name__} is int8 already; convert the float32 model it was made from")
    require_fast_bfloat16()
    return model.to(torch.bfloat16).eval()


def is_quantised(model: nn.Module) -> bool:
    return any(isinstance(module, Int8Linear) for module in model.modules())


def empty_layers(model: Any) -> dict[str, Int8Linear]:
    """Layers as quantize() would make them, for weights that are still to be read."""
    return {place: Int8Linear(layer.in_features, layer.out_features) for place, layer in _linear_layers(model)}


def _linear_layers(model: Any) -> Iterator[tuple[str, nn.Linear]]:
    """What becomes int8, by its place: linear layers in the encoder's list of layers, query, key and value as one."""
    bert_like = {
        f"{name}.attention.self": layer.attention.self
        for name, layer in model.named_modules()
        if type(layer).__name__ in _BERT_LIKE
    }
    base = {id(module) for module in model.base_model.modules()}
    lists = [name for name, module in model.named_modules() if isinstance(module, nn.ModuleList) and id(module) in base]
    yielded = False
    for name, module in model.named_modules():
        if name in bert_like:
            yield f"{name}.qkv", joined([module.query, module.key, module.value])
        elif type(module) is nn.Linear and any(name.startswith(f"{each}.") for each in lists):
            if name.rpartition(".")[0] not in bert_like:
                yield name, module
        else:
            continue
        yielded = True
    if not yielded:
        raise ModelError(f"{type(model).__name__} has no linear layers in a list of layers that could be int8")


def put_layers(model: Any, layers: dict[str, Int8Linear]) -> None:
    """Put int8 layers in their places, and have BERT-like layers run them in few calls."""
    for place, layer in layers.items():
        owner, _, name = place.rpartition(".")
        setattr(model.get_submodule(owner), name, layer)
        if name == "qkv":
            for part in ("query", "key", "value"):
                delattr(model.get_submodule(owner), part)
    for module in model.modules():
        if type(module).__name__ in _BERT_LIKE:
            # Attributes of these modules, in front of the methods of their classes.
            module.forward = BertLikeLayer(module)
            module.attention.self.forward = BertLikeAttention(module.attention.self)
    model.save_pretrained = SaveQuantised(model)


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
        rows = linear(_rows(hidden_states), module.qkv.packed).values
        query, key, value = rows.view(batch, n, 3, module.num_attention_heads, -1).permute(2, 0, 3, 1, 4)
        eager = sys.modules[type(module).__module__].eager_attention_forward
        attention = ALL_ATTENTION_FUNCTIONS.get_interface(module.config._attn_implementation, eager)
        output, weights = attention(
            module, query, key, value, attention_mask, dropout=0.0, scaling=module.scaling, **kwargs
        )
        return output.reshape(batch, n, -1), weights


class BertLikeLayer:
    """Stands in for the forward of a layer whose norms follow its residuals."""

    def __init__(self, layer: Any) -> None:
        self.layer = layer
        self.activation = _FUSED_ACTIVATIONS.get(type(layer.intermediate.intermediate_act_fn).__name__)

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
            _rows(attended), first.dense.packed, residual=_rows(hidden_states), norm=_norm(first.LayerNorm), codes=True
        )
        if self.activation is not None:
            inner: Any = linear(between.codes, up, activation=self.activation, values=False, codes=True).codes
        else:
            inner = layer.intermediate.intermediate_act_fn(linear(between.codes, up).values)
        result = linear(inner, second.dense.packed, residual=between.values, norm=_norm(second.LayerNorm)).values
        return result.view(hidden_states.shape)


def _rows(tensor: Tensor) -> Tensor:
    return tensor.reshape(-1, tensor.shape[-1])


def _norm(norm: nn.LayerNorm) -> Norm:
    return Norm(norm.weight, norm.bias, norm.eps)


def _require_inference(module: nn.Module, hidden_states: Tensor) -> None:
    if module.training:
        raise LayerError("int8 layers do not train; call model.eval(), or train in float32 and quantise afterwards")
    check_inference(hidden_states)
