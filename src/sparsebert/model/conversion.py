"""sparsify(): give any encoder of transformers a pattern, and prove that it takes it."""

from pathlib import Path
from typing import Any

import torch

from sparsebert.errors import ModelError
from sparsebert.model import bert
from sparsebert.model.config import SparseBertConfig
from sparsebert.model.interface import IMPLEMENTATION, Plan, give_plan
from sparsebert.model.positions import guard_positions
from sparsebert.patterns import Pattern, full

_TWINS: dict[str, type[bert.Sparse]] = {
    name.removeprefix("Sparse"): getattr(bert, name)
    for name in dir(bert)
    if name.startswith("SparseBert") and name != "SparseBertConfig"
}
_PROBE_TOKENS = 7  # enough for padding and for neighbours to matter
_TOLERANCE = 1e-4  # of the probe's outputs, which are of order one


def sparsify(model: Any, pattern: Pattern, *, backend: str = "auto") -> Any:
    """Run every layer of the model under the pattern, in place; returns the model.

    Before it does, a few tokens are run through the model's own attention and through ours with a full pattern: a
    model whose attention does more than ours knows of (relative positions, say) is refused rather than run wrong.
    A BERT saved afterwards is saved as its sparse class; other families refuse to be saved, for they would come
    back dense.
    """
    if isinstance(model, bert.Sparse):
        model._plan.backend = backend
        return model.set_pattern(pattern)
    plan = getattr(model, "_sparse_plan", None) or install(model)
    if pattern.heads not in (1, model.config.num_attention_heads):
        raise ModelError(f"pattern has {pattern.heads} heads but the model has {model.config.num_attention_heads}")
    plan.pattern, plan.backend = pattern, backend
    return model


def _check_family(model: Any) -> None:
    name, config = type(model).__name__, getattr(model, "config", None)
    if config is None or not getattr(model, "_supports_attention_backend", False):
        raise ModelError(
            f"{name} does not let its attention be replaced; use an encoder that supports AttentionInterface"
        )
    if getattr(config, "is_decoder", False) or getattr(config, "is_encoder_decoder", False):
        raise ModelError(f"{name} is a decoder; a pattern of this kind needs an encoder")
    if getattr(model, "main_input_name", None) != "input_ids":
        raise ModelError(f"{name} does not read tokens; a pattern of this kind needs a text encoder")


def install(model: Any) -> Plan:
    """Swap the attention and check that nothing else changed; refuses families it cannot be swapped in."""
    _check_family(model)
    before, own = _probe(model), model.config._attn_implementation
    plan = Plan(full(_PROBE_TOKENS), backend="reference")
    handed_out = give_plan(model, plan)
    model.set_attn_implementation(IMPLEMENTATION)
    try:
        if handed_out == 0:
            raise ModelError("no attention module was found")
        difference = max(float((a - b).abs().max()) for a, b in zip(before, _probe(model), strict=True))
        if not difference <= _TOLERANCE:
            raise ModelError(f"outputs differ by {difference:.2g} under a full pattern")
    except (ModelError, RuntimeError, TypeError, KeyError, ValueError) as error:
        model.set_attn_implementation(own)
        raise ModelError(f"{type(model).__name__} cannot be made sparse: {error}") from error
    guard_positions(model)
    plan.pattern, plan.backend = None, "auto"
    model._sparse_plan = plan
    model.save_pretrained = _SaveAsSparse(model, plan)
    return plan


@torch.no_grad()
def _probe(model: Any) -> list[torch.Tensor]:
    """Hidden states of the real tokens of two short inputs, one of them padded."""
    was_training = model.training
    model.eval()
    device = next(model.parameters()).device
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(5, min(1000, model.config.vocab_size), (2, _PROBE_TOKENS), generator=generator).to(device)
    real = torch.ones_like(tokens)
    real[1, _PROBE_TOKENS - 2 :] = 0
    states = model.base_model(input_ids=tokens, attention_mask=real)[0]
    model.train(was_training)
    return [states[0].float(), states[1, : _PROBE_TOKENS - 2].float()]


class _SaveAsSparse:
    """Stands in for save_pretrained of a model that was made sparse in place."""

    def __init__(self, model: Any, plan: Plan) -> None:
        self.model, self.plan = model, plan

    def __call__(self, folder: str | Path, **kwargs: Any) -> None:
        twin = _TWINS.get(type(self.model).__name__)
        if twin is None:
            raise ModelError(
                f"a saved {type(self.model).__name__} would come back dense; save the pattern with pattern.save(...), "
                "the weights with torch or safetensors, and call sparsify again after loading"
            )
        config = SparseBertConfig.from_bert(self.model.config)
        with torch.device("meta"):
            sparse: Any = twin(config)
        sparse.load_state_dict(self.model.state_dict(), assign=True)
        sparse.tie_weights()
        sparse.set_pattern(self.plan.pattern).save_pretrained(folder, **kwargs)
