"""Distillation on rows of many lengths: how a batch is cut changes nothing but the padding."""

import pytest
import torch

from sparsebert.batches import TextBatch
from sparsebert.gates import Structured
from sparsebert.model import load_model
from sparsebert.training import distillation
from sparsebert.training.distillation import DistillationObjective
from sparsebert.training.gated import Gated
from sparsebert.training.teacher import Teacher

LENGTHS = [16, 3, 15, 4]


class MixedRows:
    """Four rows, two of them much longer than the others."""

    def batch(self, step: int) -> TextBatch:
        real = torch.arange(16) < torch.tensor(LENGTHS)[:, None]
        ids = torch.randint(5, 60, (4, 16), generator=torch.Generator().manual_seed(step)) * real
        return TextBatch(ids, torch.zeros_like(ids), torch.tensor(LENGTHS))


def gated_distillation() -> Gated:
    changes = {"vocab_size": 60, "initializer_range": 0.5}
    teacher = Teacher(load_model("scratch:tiny", "none", seed=0, **changes), window=16)
    student = load_model("scratch:tiny", "none", seed=1, dropout=0.0, **changes)
    inner = DistillationObjective(student, teacher, lambda part, parts: MixedRows(), MixedRows(), trains_weights=False)
    return Gated(inner, Structured(16, 2, layers=2, sparsity=0.5, steps=8, settings="distilled"), seed=0).train()


@pytest.mark.parametrize("step", [0, 3])
def test_rows_cut_by_their_length_give_the_same_loss_and_gradient(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for cut in (True, False):
        if not cut:
            monkeypatch.setattr(distillation, "like_lengths", lambda batch: [batch])
        objective = gated_distillation()
        losses = objective(step, 0)
        losses.total.backward()
        assert losses.tokens == sum(LENGTHS)
        found.append((losses.total.detach(), objective.gate.alpha.grad))
    # The teacher's own rounding, in half precision where the processor has it, is all that differs.
    torch.testing.assert_close(found[0][0], found[1][0], rtol=2e-3, atol=1e-5)
    scale = float(found[1][1].abs().max())
    assert scale > 0
    assert float((found[0][1] - found[1][1]).abs().max()) < 0.02 * scale


def test_every_part_of_a_batch_sees_one_sample_of_the_gate() -> None:
    objective = gated_distillation()
    objective(0, 0)
    drawn = objective.gate.drawn_at
    assert drawn == (0, 0, 0)
