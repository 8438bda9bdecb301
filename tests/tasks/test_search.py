"""A pattern learned on a task's own loss."""

from pathlib import Path

import pytest

from sparsebert import Pattern, gates, load_model
from sparsebert.errors import SparseBertError
from sparsebert.files import read_json
from sparsebert.tasks.config import FinetuneConfig
from sparsebert.tasks.search import TaskGate, search_on_task

CONFIG = FinetuneConfig("rte", "builtin:tasks", "scratch:tiny", length=24, batch_size=8, max_rows=16, max_dev_rows=8)


def test_a_search_on_a_task_freezes_a_pattern_and_scores_the_model_under_it(tmp_path: Path) -> None:
    gate = TaskGate(sparsity=0.8)
    result = search_on_task(CONFIG, gate, tmp_path, fit_settings={"num_steps": 3})
    pattern = Pattern.load(tmp_path / "pattern.safetensors")
    assert abs(pattern.sparsity - 0.8) < 0.05
    assert pattern.anchor == "token"
    assert load_model(str(tmp_path / "model"), "sequence_classification").pattern == pattern
    assert gates.load(tmp_path / "gate.safetensors").freeze() == pattern
    assert read_json(tmp_path / "result.json")["sparsity"] == pattern.sparsity
    assert search_on_task(CONFIG, gate, tmp_path, fit_settings={"num_steps": 3}).fields == result.fields


def test_a_sparsity_beyond_the_border_is_refused_before_anything_is_trained(tmp_path: Path) -> None:
    with pytest.raises(SparseBertError, match="cannot be reached"):
        search_on_task(CONFIG, TaskGate(sparsity=0.95), tmp_path)
    assert not (tmp_path / "metrics.jsonl").exists()


def test_a_target_and_a_penalty_exclude_each_other() -> None:
    for settings in ({}, {"sparsity": 0.9, "penalty": 0.1}):
        with pytest.raises(SparseBertError, match="either --sparsity"):
            TaskGate(**settings)  # type: ignore[arg-type]
