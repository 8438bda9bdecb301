"""A dense model of the task teaches: its answers and states are a loss that is zero for itself."""

from pathlib import Path

import numpy as np
import pytest
import torch

from sparsebert import load_model, patterns
from sparsebert.errors import ConfigError
from sparsebert.runs import FinetuneRun, TaskSearchRun
from sparsebert.tasks.config import FinetuneConfig
from sparsebert.tasks.encoding.encoded_rows import make_items
from sparsebert.tasks.heads import run_head_and_layers
from sparsebert.tasks.loading import data_folder, load_rows, tokenizer_for
from sparsebert.tasks.table import find_task
from sparsebert.tasks.teacher import TaskTeacher

HEADS = {
    "rte": "sequence_classification",
    "stsb": "sequence_classification",
    "swag": "multiple_choice",
    "squad1": "question_answering",
}


@pytest.mark.parametrize("name", HEADS)
def test_a_teacher_finds_no_fault_with_itself_and_some_with_others(name: str, tmp_path: Path) -> None:
    task = find_task(name)
    config = FinetuneConfig(name, "builtin:tasks", "scratch:tiny").resolved()
    train, _ = load_rows(config, task, data_folder("builtin:tasks", tmp_path))
    tokenizer = tokenizer_for("scratch:tiny", train)
    items = make_items(task, train[:4], tokenizer, 96, 16)
    num_labels = {"rte": 2, "stsb": 1}.get(name)
    labels = {} if num_labels is None else {"num_labels": num_labels}
    made = {"vocab_size": tokenizer.get_vocab_size(), "initializer_range": 0.2, **labels}
    model, other = (load_model("scratch:tiny", HEADS[name], seed=seed, **made).eval() for seed in (0, 1))  # type: ignore[arg-type]
    batch = items.batch(np.arange(len(items.lengths))[:3])
    teacher = TaskTeacher(load_model("scratch:tiny", HEADS[name], seed=0, **made), task.kind, items.each)  # type: ignore[arg-type]
    own = teacher.losses(*run_head_and_layers(model, task.kind, batch, items.each), batch)
    others = teacher.losses(*run_head_and_layers(other, task.kind, batch, items.each), batch)
    assert own.shape == (3,)
    assert own.abs().max() < 1e-6
    assert (others > 0.1).all()
    others.sum().backward()
    gradient = next(other.parameters()).grad
    assert gradient is not None
    assert torch.isfinite(gradient).all()


def small(cls: type, folder: Path, name: str, **changes: object) -> None:
    given = {"task": "rte", "data": "builtin:tasks", "model": "scratch:tiny"}
    given |= {"length": 24, "num_steps": 2, "batch_size": 4}  # type: ignore[dict-item]
    cls.read({**given, **changes}).make(folder / name)  # type: ignore[attr-defined]


def test_a_run_with_a_teacher_learns_something_else_than_one_without(tmp_path: Path) -> None:
    small(FinetuneRun, tmp_path, "dense")
    started = {"model": str(tmp_path / "dense"), "pattern": patterns.star(24)}
    small(FinetuneRun, tmp_path, "alone", **started)
    small(FinetuneRun, tmp_path, "taught", **started, teacher=str(tmp_path / "dense"))
    alone, taught = ((tmp_path / name / "metrics.jsonl").read_text() for name in ("alone", "taught"))
    assert alone != taught
    assert load_model(str(tmp_path / "taught" / "model"), "sequence_classification").pattern is not None
    searching = {"model": str(tmp_path / "dense"), "teacher": str(tmp_path / "dense"), "sparsity": 0.6, "layers": "own"}
    small(TaskSearchRun, tmp_path, "searched", **searching)
    pattern = load_model(str(tmp_path / "searched" / "model"), "sequence_classification").pattern
    assert pattern.layers == 2


def test_a_teacher_of_another_task_is_refused(tmp_path: Path) -> None:
    small(FinetuneRun, tmp_path, "dense")
    started = {"model": str(tmp_path / "dense"), "teacher": str(tmp_path / "dense")}
    with pytest.raises(ConfigError, match="fine-tuned on rte; expected a dense model fine-tuned on mrpc"):
        small(FinetuneRun, tmp_path, "other", **started, task="mrpc")
    assert not (tmp_path / "other").exists()


def test_teacher_and_student_may_read_a_text_differently(tmp_path: Path) -> None:
    for name, pooling in (("first", None), ("mean", "mean")):
        small(FinetuneRun, tmp_path, name, pooling=pooling)
    for teacher, pooling in (("first", "mean"), ("mean", None)):
        given = {"teacher": str(tmp_path / teacher), "pooling": pooling}
        small(FinetuneRun, tmp_path, f"by-{teacher}", model=str(tmp_path / "first"), **given)
        small(TaskSearchRun, tmp_path, f"for-{teacher}", model=str(tmp_path / "first"), sparsity=0.6, **given)
        found = load_model(str(tmp_path / f"for-{teacher}" / "model"), "sequence_classification")
        assert found.config.head_pooling == pooling
