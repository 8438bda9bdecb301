"""Small models and inputs, and what a model must be left with."""

from typing import Any

import torch

from sparsebert import load_model

TINY: dict[str, Any] = {
    "num_hidden_layers": 2,
    "hidden_size": 16,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    # Large enough for attention to matter: at the usual 0.02 a pattern changes the fifth digit of the logits.
    "initializer_range": 0.5,
}


def tiny(**changes: Any) -> Any:
    return load_model("scratch:tiny", "sequence_classification", vocab_size=50, seed=0, **{**TINY, **changes})


def tokens(rows: int = 4, n: int = 12) -> torch.Tensor:
    return torch.randint(0, 50, (rows, n), generator=torch.Generator().manual_seed(0))


def snapshot(model: Any) -> list[Any]:
    """Everything about a model that making it sparse changes: classes, attention, attributes and hooks."""
    hooks = [len(module._forward_pre_hooks) for module in model.modules()]
    names = [sorted(module.__dict__) for module in model.modules()]
    config = [type(model), type(model.config), model.config._attn_implementation, model.config.to_dict()]
    return [*config, hooks, names]
