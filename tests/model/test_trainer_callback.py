"""GateCallback: a gate learned in transformers' Trainer, stopped and resumed like everything else in it."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import Trainer, TrainingArguments

from sparsebert import gates, patterns
from sparsebert.errors import GateError
from sparsebert.model.trainer_callback import GATE, OPTIMISER, GateCallback
from tests.model.cases import tiny, tokens


def new_gate(**changes: Any) -> Any:
    return gates.Structured(**{"length": 12, "heads": 2, "sparsity": 0.6, "rate": 0.1, **changes})


def trainer(folder: Path, gate: gates.Gate, model: Any = None, more: Any = None, **callback: Any) -> Any:
    rows = [{"input_ids": row, "labels": torch.tensor(number % 2)} for number, row in enumerate(tokens(8))]
    arguments = TrainingArguments(
        str(folder),
        max_steps=4,
        per_device_train_batch_size=2,
        gradient_accumulation_steps=2,
        report_to="none",
        save_strategy="steps",
        save_steps=2,
        disable_tqdm=True,
        use_cpu=True,
        dataloader_pin_memory=False,
        **(more or {}),
    )
    data = {"train_dataset": rows, "eval_dataset": rows[:2]}
    model = tiny() if model is None else model
    return Trainer(model=model, args=arguments, callbacks=[GateCallback(gate, **callback)], **data)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """The folder of an undisturbed run with a checkpoint half-way, and its gate."""
    folder, gate = tmp_path_factory.mktemp("trainer"), new_gate()
    trainer(folder, gate).train()
    return folder, gate


@pytest.mark.parametrize("settings", ["default", "paper"])
def test_the_trainer_of_transformers_learns_a_gate_through_the_callback(tmp_path: Path, settings: str) -> None:
    gate, model = new_gate(settings=settings), tiny()
    before = gate.alpha.detach().clone()
    trainer(tmp_path, gate, model).train()
    assert gate.steps == 4
    assert int(gate.step) == 4
    assert not torch.equal(gate.alpha, before)
    assert model.sparse_plan.gate is None


@pytest.mark.parametrize("asked", ["the last", "by name", "elsewhere"])
def test_a_resumed_training_ends_with_the_same_gate_to_the_bit(
    finished: tuple[Path, Any], tmp_path: Path, asked: str
) -> None:
    folder, undisturbed = finished
    again, gate = tmp_path / "again", new_gate()
    shutil.copytree(folder / "checkpoint-2", again / "checkpoint-2")
    if asked == "the last":
        trainer(again, gate).train(resume_from_checkpoint=True)
    elif asked == "by name":
        trainer(again, gate).train(resume_from_checkpoint=str(again / "checkpoint-2"))
    else:
        there = folder / "checkpoint-2"
        trainer(tmp_path / "empty", gate, resume_from=there).train(resume_from_checkpoint=str(there))
    assert gate.state_dict().keys() == undisturbed.state_dict().keys()
    for name, tensor in gate.state_dict().items():
        assert torch.equal(tensor, undisturbed.state_dict()[name]), name
    assert float(gate.dual) > 0
    assert gate.freeze(sparsity=0.6) == undisturbed.freeze(sparsity=0.6)


@pytest.mark.parametrize("missing", [GATE, OPTIMISER])
def test_a_checkpoint_without_the_gate_is_refused(finished: tuple[Path, Any], tmp_path: Path, missing: str) -> None:
    shutil.copytree(finished[0] / "checkpoint-2", tmp_path / "checkpoint-2")
    (tmp_path / "checkpoint-2" / missing).unlink()
    gate, model = new_gate(), tiny()
    with pytest.raises(Exception, match=missing):
        trainer(tmp_path, gate, model).train(resume_from_checkpoint=True)
    assert int(gate.step) == 0
    assert model.sparse_plan.gate is None


def test_the_gate_of_other_weights_is_refused(finished: tuple[Path, Any], tmp_path: Path) -> None:
    trainer(tmp_path, new_gate(), tiny(hidden_dropout_prob=0.0)).train()
    with pytest.raises(GateError, match="other weights"):
        trainer(tmp_path, new_gate()).train(resume_from_checkpoint=str(finished[0] / "checkpoint-2"))


def test_a_gate_made_otherwise_is_refused_and_told_how_it_was_made(finished: tuple[Path, Any]) -> None:
    with pytest.raises(GateError, match=r"sparsity 0\.6"):
        trainer(finished[0], new_gate(sparsity=0.65)).train(resume_from_checkpoint=str(finished[0] / "checkpoint-2"))


def test_a_model_that_has_a_pattern_asks_what_is_meant_and_is_told(tmp_path: Path) -> None:
    star, gate = patterns.star(12), new_gate(sparsity=None)
    with pytest.raises(GateError, match="inside=True"):
        trainer(tmp_path, gate, tiny().set_pattern(star)).train()
    trainer(tmp_path, gate, tiny().set_pattern(star), inside=True).train()
    assert gate.inside == star


def test_the_gate_belongs_to_the_weights_that_training_ends_with(tmp_path: Path) -> None:
    gate = new_gate()
    best = {"eval_strategy": "steps", "eval_steps": 2, "load_best_model_at_end": True, "learning_rate": 0.3}
    run = trainer(tmp_path, gate, more=best)
    run.train()
    chosen = gates.load(Path(run.state.best_model_checkpoint) / GATE)
    assert int(gate.step) == int(chosen.step) == run.state.best_global_step
    assert torch.equal(gate.alpha, chosen.alpha)  # type: ignore[arg-type]
