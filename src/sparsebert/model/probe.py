"""Whether a model's attention may be replaced by ours: it must say so, and a few tokens must come out the same."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any

import torch
from torch.func import functional_call

from sparsebert.errors import ModelError
from sparsebert.model.head_pooling import reads_first_token
from sparsebert.model.plan import check_encoder

PROBE_TOKENS = 7  # enough for padding and for neighbours to matter
_TOLERANCE = 1e-4  # of the probe's outputs, float32 and of order one


def check_family(model: Any) -> None:
    """Refuse a model, or a class, whose attention is not ours to replace."""
    name = getattr(model, "__name__", type(model).__name__)
    if not getattr(model, "_supports_attention_backend", False) or not hasattr(model, "config_class"):
        raise ModelError(
            f"{name} does not let its attention be replaced; use an encoder that supports AttentionInterface"
        )
    if getattr(model, "config", None) is not None:
        check_encoder(model.config)
    if getattr(model, "main_input_name", None) != "input_ids":
        raise ModelError(f"{name} does not read tokens; a pattern of this kind needs a text encoder")


def require_same(before: list[torch.Tensor], after: list[torch.Tensor]) -> None:
    """Refuse attention that does more than ours knows of."""
    difference = max(float((a - b).abs().max()) for a, b in zip(before, after, strict=True))
    if not difference <= _TOLERANCE:
        raise ModelError(f"outputs differ by {difference:.2g} under a full pattern")


@torch.no_grad()
def probe(model: Any, packed: Callable[..., dict[str, Any]] | None = None) -> list[torch.Tensor]:
    """Hidden states of the real tokens of two short inputs, one of them padded; or as `packed` hands them over.

    In float32 whatever the model's own type: in bfloat16 the difference that counts would drown in rounding.
    """
    base, vocab_size = model.base_model, int(model.config.vocab_size)
    tensors = dict(chain(base.named_parameters(), base.named_buffers()))
    single = {name: tensor.float() if tensor.is_floating_point() else tensor for name, tensor in tensors.items()}
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(min(5, vocab_size - 1), min(1000, vocab_size), (2, PROBE_TOKENS), generator=generator)
    tokens = tokens.to(next(base.parameters()).device)
    lengths = torch.tensor([PROBE_TOKENS, PROBE_TOKENS - 2], device=tokens.device)
    real = torch.arange(PROBE_TOKENS, device=tokens.device) < lengths[:, None]
    if packed is None:
        inputs = {"input_ids": tokens, "attention_mask": real.long()}
    else:
        inputs = packed(model, tokens[real], lengths)
    with _evaluating(base):
        if reads_first_token(model):
            states = functional_call(base, single, kwargs=inputs)[0]
        else:  # the output is handed over as a mean
            states = functional_call(base, single, kwargs={**inputs, "output_hidden_states": True})["hidden_states"][-1]
    return list(states[real].split(lengths.tolist()) if packed is None else states[0].split(lengths.tolist()))


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
