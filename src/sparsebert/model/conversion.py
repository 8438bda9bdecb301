"""sparsify() and unsparsify(): give any encoder of transformers a pattern, prove that it takes it, and take it back."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from torch.func import functional_call

from sparsebert.errors import ModelError
from sparsebert.layers import Int8Linear
from sparsebert.model import bert
from sparsebert.model.config import SparseBertConfig
from sparsebert.model.plan import (
    IMPLEMENTATION,
    Plan,
    check_attention,
    check_backend,
    check_encoder,
    check_no_gate,
    check_pattern,
    give_plan,
    plan_of,
    take_plan,
)
from sparsebert.patterns import Pattern, full

_TWINS: dict[str, type[bert.Sparse]] = {
    name.removeprefix("Sparse"): getattr(bert, name)
    for name in dir(bert)
    if name.startswith("SparseBert") and name != "SparseBertConfig"
}
_PROBE_TOKENS = 7  # enough for padding and for neighbours to matter
_TOLERANCE = 1e-4  # of the probe's outputs, float32 and of order one


def sparsify(model: Any, pattern: Pattern, *, backend: str = "auto") -> Any:
    """Run every layer of the model under the pattern, in place; returns the model. One that is refused stays as it was.

    Before it does, a few tokens are run through the model's own attention and through ours with a full pattern: a
    model whose attention does more than ours knows of (relative positions, say) is refused rather than run wrong.
    A BERT saved afterwards is saved as its sparse class; other families refuse to be saved, for they would come
    back dense.
    """
    check_family(model)
    check_pattern(model, pattern)
    check_backend(backend)
    plan = plan_of(model)
    check_no_gate(plan)
    plan = plan or install(model)
    if isinstance(plan.owner, bert.Sparse):
        plan.owner.set_pattern(pattern)
    plan.pattern, plan.backend = pattern, backend
    return model


def unsparsify(model: Any) -> Any:
    """Back to dense, in place; returns the model. A model that sparsify() changed gets its own attention back."""
    plan = plan_of(model)
    if plan is not None:
        plan.gate = None
        if isinstance(plan.owner, bert.Sparse):
            plan.owner.set_pattern(None)
        else:
            uninstall(plan)
    return model


def check_family(model: Any) -> None:
    """Refuse a model whose attention is not ours to replace."""
    name, config = type(model).__name__, getattr(model, "config", None)
    if config is None or not getattr(model, "_supports_attention_backend", False):
        raise ModelError(
            f"{name} does not let its attention be replaced; use an encoder that supports AttentionInterface"
        )
    check_encoder(config)
    if getattr(model, "main_input_name", None) != "input_ids":
        raise ModelError(f"{name} does not read tokens; a pattern of this kind needs a text encoder")


def install(model: Any) -> Plan:
    """Swap the attention and check that nothing else changed; a model it cannot be swapped in is refused as it was."""
    check_family(model)
    if any(isinstance(module, Int8Linear) for module in model.modules()):
        raise ModelError(f"this {type(model).__name__} is int8 already; make it sparse first, then quantise it")
    plan = Plan(full(_PROBE_TOKENS), backend="reference", replaced=model.config._attn_implementation)
    try:
        before = _probe(model)
        if give_plan(model, plan) == 0:
            raise ModelError("no attention module was found")
        model.set_attn_implementation(IMPLEMENTATION)
        difference = max(float((a - b).abs().max()) for a, b in zip(before, _probe(model), strict=True))
        if not difference <= _TOLERANCE:
            raise ModelError(f"outputs differ by {difference:.2g} under a full pattern")
    except (ModelError, RuntimeError, TypeError, KeyError, ValueError, IndexError) as error:
        take_plan(model)
        model.set_attn_implementation(plan.replaced)
        raise ModelError(f"{type(model).__name__} cannot be made sparse: {error}") from error
    plan.pattern, plan.backend = None, "auto"
    # Attributes of this one model, in front of the methods of its class.
    model.save_pretrained = _SaveAsSparse(model)
    model.set_attn_implementation = _SetAttention(model)
    return plan


def uninstall(plan: Plan) -> None:
    """Undo install()."""
    model = plan.owner
    del model.set_attn_implementation
    if isinstance(model.save_pretrained, _SaveAsSparse):  # a model that was quantised since is saved in its own way
        del model.save_pretrained
    take_plan(model)
    model.set_attn_implementation(plan.replaced)


@torch.no_grad()
def _probe(model: Any) -> list[torch.Tensor]:
    """Hidden states of the real tokens of two short inputs, one of them padded.

    In float32 whatever the model's own type: in bfloat16 the difference that counts would drown in rounding.
    """
    base, vocab_size = model.base_model, int(model.config.vocab_size)
    tensors = dict(chain(base.named_parameters(), base.named_buffers()))
    single = {name: tensor.float() if tensor.is_floating_point() else tensor for name, tensor in tensors.items()}
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(min(5, vocab_size - 1), min(1000, vocab_size), (2, _PROBE_TOKENS), generator=generator)
    tokens = tokens.to(next(base.parameters()).device)
    real = torch.ones_like(tokens)
    real[1, _PROBE_TOKENS - 2 :] = 0
    with _evaluating(base):
        states = functional_call(base, single, kwargs={"input_ids": tokens, "attention_mask": real})[0]
    return [states[0], states[1, : _PROBE_TOKENS - 2]]


@contextmanager
def _evaluating(model: torch.nn.Module) -> Iterator[None]:
    """Evaluation mode; afterwards every module is in the mode it was in."""
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        yield
    finally:
        for module in training:
            module.training = True


def has_sparse_form(model: Any) -> bool:
    """Whether the model can be saved so that it comes back as sparse as it is."""
    return isinstance(model, bert.Sparse) or type(model).__name__ in _TWINS


class _SaveAsSparse:
    """Stands in for save_pretrained of a model that was made sparse in place."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def __call__(self, folder: str | Path, **kwargs: Any) -> None:
        plan, twin = plan_of(self.model), _TWINS.get(type(self.model).__name__)
        if plan is None or plan.pattern is None:  # only a gate is attached, which is saved apart
            type(self.model).save_pretrained(self.model, folder, **kwargs)
            return
        if twin is None:
            raise ModelError(
                f"a saved {type(self.model).__name__} would come back dense; save the pattern with pattern.save(...), "
                "the weights with torch or safetensors, and call sparsify again after loading"
            )
        config = SparseBertConfig.from_bert(self.model.config)
        with torch.device("meta"):
            sparse: Any = twin(config)
        given = kwargs.pop("state_dict", None)
        sparse.load_state_dict(self.model.state_dict() if given is None else given, assign=True)
        sparse.tie_weights()
        sparse.set_pattern(plan.pattern).save_pretrained(folder, **kwargs)


class _SetAttention:
    """Stands in for set_attn_implementation of a model that was made sparse in place."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def __call__(self, attn_implementation: Any, *args: Any, **kwargs: Any) -> None:
        plan = plan_of(self.model)
        if plan is not None:
            check_attention(plan, attn_implementation)
        type(self.model).set_attn_implementation(self.model, attn_implementation, *args, **kwargs)
