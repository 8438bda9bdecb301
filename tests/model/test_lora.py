"""LoRA around a sparse model: adapters are trained under the pattern, saved apart, and come back onto it."""

from pathlib import Path

import pytest
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from torch import Tensor
from transformers import Trainer, TrainingArguments

from sparsebert import Pattern, load_model, patterns
from sparsebert.errors import ModelError
from tests.model.cases import tiny, tokens

STAR, WINDOW = patterns.star(12), patterns.window(12, radius=1)


@pytest.fixture
def sparse_folder(tmp_path: Path) -> Path:
    tiny().set_pattern(STAR).save_pretrained(tmp_path / "sparse")
    return tmp_path / "sparse"


def adapted(folder: Path, pattern: Pattern | None = None) -> PeftModel:
    torch.manual_seed(0)
    model = load_model(str(folder), "sequence_classification", pattern=pattern)
    return get_peft_model(model, LoraConfig(target_modules=["query", "value"], r=2, task_type="SEQ_CLS"))


def trainer(model: PeftModel, out: Path) -> Trainer:
    rows = [{"input_ids": row, "labels": torch.tensor(number % 2)} for number, row in enumerate(tokens(8))]
    arguments = TrainingArguments(
        str(out), per_device_train_batch_size=2, report_to="none", save_steps=2, max_steps=4, use_cpu=True,
        dataloader_pin_memory=False, disable_tqdm=True, learning_rate=0.1,
    )  # fmt: skip
    return Trainer(model=model, args=arguments, train_dataset=rows)


@torch.no_grad()
def answers(model: PeftModel) -> Tensor:
    found: Tensor = model.eval()(tokens(2)).logits
    return found


def test_adapters_are_trained_under_the_pattern_and_come_back_to_the_bit(sparse_folder: Path, tmp_path: Path) -> None:
    model = adapted(sparse_folder)
    assert model.get_base_model().pattern == STAR
    before = answers(model)
    trainer(model, tmp_path / "run").train()
    after = answers(model)
    assert not torch.allclose(before, after)
    model.save_pretrained(tmp_path / "adapter")
    assert not (tmp_path / "adapter" / "model.safetensors").exists()
    fresh = load_model(str(sparse_folder), "sequence_classification")
    back = PeftModel.from_pretrained(fresh, str(tmp_path / "adapter"))
    assert back.get_base_model().pattern == STAR
    assert torch.equal(answers(back), after)


def test_a_checkpoint_of_adapters_is_resumed_under_its_pattern_or_not_at_all(
    sparse_folder: Path, tmp_path: Path
) -> None:
    trainer(adapted(sparse_folder), tmp_path / "run").train()
    checkpoint = str(tmp_path / "run" / "checkpoint-2")
    trainer(adapted(sparse_folder), tmp_path / "again").train(resume_from_checkpoint=checkpoint)
    with pytest.raises(ModelError, match=f"step 2 was trained under the pattern {STAR.digest[:8]}"):
        trainer(adapted(sparse_folder, WINDOW), tmp_path / "other").train(resume_from_checkpoint=checkpoint)
