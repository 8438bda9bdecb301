"""Trained attention maps, averaged: what a model attends to, which is not the same as what it needs."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from sparsebert.training.pretraining import BatchSource


@torch.no_grad()
def average_attention(model: Any, batches: BatchSource, num_batches: int) -> Float[Tensor, "heads n n"]:
    """Attention weights averaged over layers and over the examples in which both tokens are real."""
    was_training = model.training
    model.eval()
    total = seen = None
    for number in range(num_batches):
        batch = batches.batch(number)
        device = next(model.parameters()).device
        real = torch.arange(batch.input_ids.shape[1], device=device) < batch.lengths.to(device)[:, None]
        output = model.bert(
            input_ids=batch.input_ids.to(device),
            token_type_ids=batch.token_type_ids.to(device),
            attention_mask=real.long(),
            output_attentions=True,
        )
        maps = torch.stack(output.attentions).mean(0).sum(0).double()
        both = (real[:, :, None] & real[:, None, :]).sum(0).double()
        total, seen = (maps, both) if total is None or seen is None else (total + maps, seen + both)
    model.train(was_training)
    assert total is not None
    assert seen is not None
    return total / seen.clamp(min=1)
