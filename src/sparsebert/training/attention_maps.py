"""Trained attention maps, averaged: what a model attends to, which is not the same as what it needs."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from sparsebert.model.heads import encoder_inputs
from sparsebert.training.pretraining import BatchSource


@torch.no_grad()
def average_attention(model: Any, batches: BatchSource, num_batches: int) -> Float[Tensor, "heads n n"]:
    """Attention weights averaged over layers and over the examples in which both tokens are real."""
    was_training = model.training
    model.eval()
    total = seen = None
    for number in range(num_batches):
        batch = batches.batch(number)
        inputs = encoder_inputs(model, batch)
        real = inputs["attention_mask"].bool()
        output = model.base_model(**inputs, output_attentions=True)
        maps = torch.stack(output.attentions).mean(0).sum(0).double()
        both = (real[:, :, None] & real[:, None, :]).sum(0).double()
        total, seen = (maps, both) if total is None or seen is None else (total + maps, seen + both)
    model.train(was_training)
    assert total is not None
    assert seen is not None
    return total / seen.clamp(min=1)
