"""Fine-tuning, a search on a task, and prediction keep every tensor on the model's device; told without a GPU."""

from pathlib import Path

import pytest

from sparsebert.tasks.config import FinetuneConfig
from sparsebert.tasks.finetune import finetune
from sparsebert.tasks.prediction import Predictor
from sparsebert.tasks.reading import read_rows
from sparsebert.tasks.search import TaskGate, search_on_task
from tests.attention.interpreter import interpreted, needs_triton
from tests.training.pretend_gpu import GPU, pretended_gpu

__all__ = ["interpreted"]  # a fixture
pytestmark = [needs_triton, pytest.mark.usefixtures("interpreted")]


def config(task: str, data: Path) -> FinetuneConfig:
    return FinetuneConfig(task, str(data), "scratch:tiny", max_rows=2, max_dev_rows=2, batch_size=2, num_epochs=1)


@pytest.mark.parametrize("task", ["rte", "swag", "squad1"])
def test_fine_tuning_and_prediction_keep_to_one_device(builtin_data: Path, tmp_path: Path, task: str) -> None:
    with pretended_gpu() as operations:
        finetune(config(task, builtin_data), tmp_path, pattern="window")
        predictor = Predictor(tmp_path)
        assert next(predictor.model.parameters()).device == GPU
        rows = read_rows(predictor.task, builtin_data, "dev")[:2]
        assert len(list(predictor.predict(rows))) == 2
    assert len(operations.attention) == 2  # forward and backward


@pytest.mark.parametrize("kind", ["structured", "unstructured"])
def test_a_search_on_a_task_keeps_to_one_device(builtin_data: Path, tmp_path: Path, kind: str) -> None:
    with pretended_gpu():
        search_on_task(config("rte", builtin_data), TaskGate(kind, sparsity=0.5), tmp_path)  # type: ignore[arg-type]
