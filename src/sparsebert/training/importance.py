"""The importance analysis (Section 3.1): a soft P learned beside the weights, and trained attention maps beside it."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from sparsebert import gates
from sparsebert.batches import TextBatch
from sparsebert.importance.categories import tabulate
from sparsebert.importance.saved import GATE, importance_of, save_maps
from sparsebert.model import detach
from sparsebert.model.heads import encoder_inputs
from sparsebert.training.gated import Gated
from sparsebert.training.objective import Wrapper
from sparsebert.training.pretraining import PretrainingObjective
from sparsebert.training.text_objective import BatchSource


class LearnedImportance(Wrapper):
    """Training under a soft gate, ended by the table of what it learned."""

    inner: Gated

    def finish(self, folder: Path) -> dict[str, Any]:
        gates.save(self.inner.gate, folder / GATE)
        detach(self.model)
        return self.inner.finish(folder) | _tabulated("gate", importance_of(self.inner.gate), self.inner.seed)


class TrainedAttention(Wrapper):
    """Pre-training as it is, ended by the trained attention maps and their table."""

    inner: PretrainingObjective

    def __init__(self, inner: PretrainingObjective, *, seed: int) -> None:
        super().__init__(inner)
        self.seed = seed

    def finish(self, folder: Path) -> dict[str, Any]:
        maps = average_attention(self.model, self.inner.held_out, self.inner.num_held_out).cpu().numpy()
        save_maps(folder, maps)
        return self.inner.finish(folder) | _tabulated("attention", maps, self.seed)


@torch.no_grad()
def average_attention(model: Any, batches: BatchSource[TextBatch], num_batches: int) -> Float[Tensor, "heads n n"]:
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


def _tabulated(method: str, importance: Float[np.ndarray, "heads n n"], seed: int) -> dict[str, Any]:
    table = tabulate(importance, seed)
    return {"task": "importance", "method": method, "table": table.as_json(), "verdict": table.verdict()}
