"""Every kind of run, and prediction, keeps every tensor on the model's device; told without a GPU."""

from pathlib import Path
from typing import Any

import pytest

from sparsebert.runs import FinetuneRun, ImportanceRun, SearchRun, TaskSearchRun
from sparsebert.tasks.files.reading import read_rows
from sparsebert.tasks.prediction import Predictor
from tests.attention.interpreter import interpreted, needs_triton
from tests.training.pretend_gpu import GPU, pretended_gpu

__all__ = ["interpreted"]  # a fixture
pytestmark = [needs_triton, pytest.mark.usefixtures("interpreted")]


SMALL: dict[str, Any] = {"max_rows": 2, "max_dev_rows": 2, "batch_size": 2, "num_epochs": 1}


@pytest.mark.parametrize("task", ["rte", "swag", "squad1"])
def test_fine_tuning_and_prediction_keep_to_one_device(builtin_data: Path, tmp_path: Path, task: str) -> None:
    with pretended_gpu() as operations:
        FinetuneRun(task, str(builtin_data), "scratch:tiny", pattern="window", **SMALL).make(tmp_path)
        predictor = Predictor(tmp_path)
        assert next(predictor.model.parameters()).device == GPU
        rows = read_rows(predictor.task, builtin_data, "dev")[:2]
        assert len(list(predictor.predict(rows))) == 2
    assert len(operations.attention) == 2  # forward and backward


@pytest.mark.parametrize("kind", ["structured", "unstructured"])
def test_a_search_on_a_task_keeps_to_one_device(builtin_data: Path, tmp_path: Path, kind: str) -> None:
    with pretended_gpu():
        given = {"task": "rte", "data": str(builtin_data), "model": "scratch:tiny", "kind": kind, "sparsity": 0.5}
        found = TaskSearchRun.read({**given, **SMALL}).make(tmp_path)
    assert found.fields["sparsity"] == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("soft", {}),
        ("attention", {}),
        ("structured", {"sparsity": 0.6}),
        ("structured", {"sparsity": 0.6, "path": "sparse"}),
        ("structured", {"sparsity": 0.6, "levels": 2}),
        ("unstructured", {"sparsity": 0.8}),
    ],
    ids=lambda value: "-".join(map(str, value.values())) if isinstance(value, dict) else value,
)
def test_importance_and_search_keep_to_one_device(
    docs_corpus: Path, tmp_path: Path, kind: str, changes: dict[str, Any]
) -> None:
    with pretended_gpu() as operations:
        given = {
            "kind": kind,
            "model": "scratch:tiny",
            "corpus": docs_corpus,
            "steps": 1,
            "length": 12,
            "batch_size": 2,
        }
        cls = ImportanceRun if kind in ("soft", "attention") else SearchRun
        cls.read({**given, "num_held_out": 1, **changes}).make(tmp_path)
    # A gate's own samples go through Triton on the sparse path, and not through a dense gate.
    assert ("sparsebert.triton_attention_backward.default" in operations.attention) == (changes.get("path") == "sparse")
