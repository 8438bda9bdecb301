"""A training that is resumed goes on under the pattern of its checkpoint, or not at all."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import Trainer, TrainingArguments

from sparsebert import Pattern, patterns, sparsify
from sparsebert.errors import ModelError
from tests.model.cases import tiny, tokens

STAR, WINDOW = patterns.star(12), patterns.window(12, radius=1)


def trainer(folder: Path, pattern: Pattern | None, **more: Any) -> Trainer:
    rows = [{"input_ids": row, "labels": torch.tensor(number % 2)} for number, row in enumerate(tokens(8))]
    arguments = TrainingArguments(
        str(folder),
        per_device_train_batch_size=2,
        report_to="none",
        save_steps=2,
        disable_tqdm=True,
        use_cpu=True,
        dataloader_pin_memory=False,
        **{"max_steps": 4, **more},
    )
    return Trainer(model=tiny().set_pattern(pattern), args=arguments, train_dataset=rows)


@pytest.fixture(scope="module")
def under_a_star(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("star")
    trainer(folder, STAR).train()
    return folder / "checkpoint-2"


@pytest.fixture(scope="module")
def dense(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dense")
    trainer(folder, None).train()
    return folder / "checkpoint-2"


@pytest.mark.parametrize("model", [WINDOW, None], ids=["another", "none"])
def test_a_checkpoint_of_another_pattern_is_refused(under_a_star: Path, tmp_path: Path, model: Pattern | None) -> None:
    found = "without a pattern" if model is None else f"under the pattern {WINDOW.digest[:8]}"
    said = f"step 2 was trained under the pattern {STAR.digest[:8]} .*, but the model runs {found}"
    with pytest.raises(ModelError, match=said):
        trainer(tmp_path, model).train(resume_from_checkpoint=str(under_a_star))


def test_a_dense_checkpoint_is_refused_by_a_sparse_model(dense: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="step 2 was trained without a pattern, but the model runs under"):
        trainer(tmp_path, STAR).train(resume_from_checkpoint=str(dense))


def test_what_the_refusal_advises_is_enough(under_a_star: Path, tmp_path: Path) -> None:
    run = trainer(tmp_path, WINDOW)
    sparsify(run.model, Pattern.load(under_a_star / "pattern.safetensors"))
    run.train(resume_from_checkpoint=str(under_a_star))
    straight = torch.load(under_a_star.parent / "checkpoint-4" / "optimizer.pt")
    resumed = torch.load(tmp_path / "checkpoint-4" / "optimizer.pt")
    assert all(
        torch.equal(one["exp_avg"], other["exp_avg"])
        for one, other in zip(straight["state"].values(), resumed["state"].values(), strict=True)
    )


def test_states_of_callbacks_that_are_asked_for_come_back_beside_it(under_a_star: Path, tmp_path: Path) -> None:
    run = trainer(tmp_path, STAR, restore_callback_states_from_checkpoint=True)
    run.train(resume_from_checkpoint=str(under_a_star))
    assert run.state.global_step == 4


def test_a_dense_training_has_no_note_of_ours(dense: Path, under_a_star: Path) -> None:
    def noted(folder: Path) -> bool:
        return "PatternGuard" in json.loads((folder / "trainer_state.json").read_text())["stateful_callbacks"]

    assert not noted(dense)
    assert noted(under_a_star)


def test_a_pattern_given_between_two_trainings_is_noticed_by_the_second(under_a_star: Path, tmp_path: Path) -> None:
    shutil.copytree(under_a_star, tmp_path / "checkpoint-2")
    run = trainer(tmp_path, STAR)
    run.train(resume_from_checkpoint=True)
    sparsify(run.model, WINDOW)
    run.args.max_steps = 6
    with pytest.raises(ModelError, match=f"step 4 was trained under the pattern {STAR.digest[:8]}"):
        run.train(resume_from_checkpoint=True)


@pytest.mark.parametrize(
    "imports",
    ["import sparsebert; import transformers.trainer", "import transformers.trainer; import sparsebert"],
)
def test_every_trainer_is_guarded_whatever_was_imported_first(imports: str) -> None:
    program = f"{imports}; print(transformers.trainer.DEFAULT_CALLBACKS[-1].__name__)"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["PatternGuard"], done.stderr
