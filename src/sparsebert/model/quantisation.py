"""quantize(): the linear layers of an encoder in int8, in place; BERT-like layers run in few calls of the kernel."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from sparsebert.errors import ModelError
from sparsebert.layers import Int8Linear, joined, require_kernel
from sparsebert.layers.bfloat16 import require_fast_bfloat16
from sparsebert.model.plan import check_no_gate, plan_of
from sparsebert.model.probe import check_family
from sparsebert.model.quantised_encoder import BertLikeEncoder
from sparsebert.model.quantised_layers import BERT_LIKE, BertLikeAttention, BertLikeLayer
from sparsebert.model.quantised_saving import SaveQuantised


def quantize(model: Any) -> Any:
    """Give the layers of the model's encoder int8 weights, in place; returns the model, in evaluation mode.

    From now on it is for inference alone, on the CPU. Embeddings, norms and heads stay in float32,
    and attention too unless it runs under a pattern, where it takes and leaves bfloat16. A model
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


def _is_bert_like_encoder(module: nn.Module) -> bool:
    layers = getattr(module, "layer", None)
    return isinstance(layers, nn.ModuleList) and all(type(layer).__name__ in BERT_LIKE for layer in layers)


def _linear_layers(model: Any) -> Iterator[tuple[str, nn.Linear]]:
    """What becomes int8, by its place: linear layers in the encoder's list of layers, query, key and value as one."""
    bert_like = {
        f"{name}.attention.self": layer.attention.self
        for name, layer in model.named_modules()
        if type(layer).__name__ in BERT_LIKE
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
        if type(module).__name__ in BERT_LIKE:
            # Attributes of these modules, in front of the methods of their classes.
            module.forward = BertLikeLayer(module)
            module.attention.self.forward = BertLikeAttention(module.attention.self)
        elif _is_bert_like_encoder(module):
            module.forward = BertLikeEncoder(module)
    model.save_pretrained = SaveQuantised(model)
