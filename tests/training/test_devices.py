"""Training keeps every tensor on the model's device, shown without a GPU: tests/training/pretend_gpu.py."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from sparsebert import attend, patterns
from sparsebert.errors import AttentionError
from sparsebert.training import fit
from sparsebert.training.pretraining import PretrainingObjective
from tests.attention.interpreter import interpreted, needs_triton
from tests.training.cases import short_fit, small_pretraining
from tests.training.pretend_gpu import GPU, WrongDeviceError, pretended_gpu

__all__ = ["interpreted"]  # a fixture
pytestmark = [needs_triton, pytest.mark.usefixtures("interpreted")]


def test_pretraining_evaluates_saves_and_resumes_on_one_device(tmp_path: Path) -> None:
    with pretended_gpu() as operations:
        objective, config = small_pretraining(), short_fit(num_steps=1, warmup_steps=0)
        fit(objective, config, tmp_path)
        assert objective.device == GPU
        (tmp_path / "result.json").unlink()
        assert fit(small_pretraining(), config, tmp_path).resumed_from == 1
    assert operations.attention == {
        "sparsebert.triton_attention.default",
        "sparsebert.triton_attention_backward.default",
    }


def test_one_tensor_on_the_wrong_device_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = PretrainingObjective.losses

    def planted(self: Any, batch: Any, predicted: float) -> Any:
        losses = whole(self, batch, predicted)
        return replace(losses, total=(losses.total * torch.ones(1)).sum())

    monkeypatch.setattr(PretrainingObjective, "losses", planted)
    with pretended_gpu(), pytest.raises(WrongDeviceError, match="cuda:0 and on the CPU"):
        fit(small_pretraining(), short_fit(num_steps=1, warmup_steps=0), tmp_path)


@pytest.mark.parametrize(
    "mixing",
    [
        lambda here, there: here + there,
        lambda here, there: torch.cat([here, there]),
        lambda here, there: here.index_select(0, there.long()),
        lambda here, there: there[here.long()],
        lambda here, there: here.addcmul_(there, there),
        lambda here, there: torch.autograd.grad(here.requires_grad_().square(), here, there),
        lambda here, there: here.numpy(),
    ],
)
def test_the_pretended_gpu_refuses_what_a_gpu_refuses(mixing: Any) -> None:
    with pretended_gpu():
        here, there = torch.ones(2, device="cuda"), torch.ones(2)
        with pytest.raises(RuntimeError):
            mixing(here, there)


def test_the_pretended_gpu_allows_what_a_gpu_allows() -> None:
    with pretended_gpu():
        here, there = torch.ones(2).to("cuda"), torch.ones(2)
        allowed: list[Tensor] = [here * torch.tensor(2.0), here[there.long()], here + 1, there.to(GPU) + here]
        allowed += [here.new_zeros(2), torch.zeros_like(here), here.view(2, 1)]
        assert all(one.device == GPU and one.is_cuda for one in allowed)
        assert (here.copy_(there).device, here.cpu().device, there.device) == (GPU, *[torch.device("cpu")] * 2)


def test_the_cpu_kernel_is_not_given_tensors_of_a_gpu() -> None:
    with pretended_gpu():
        query = torch.zeros(1, 1, 4, 8, device="cuda")
        with pytest.raises(AttentionError, match=r"query is on cuda:0.*runs on the CPU"):
            attend(query, query, query, pattern=patterns.window(4), backend="sparse")
