"""Gradient checkpointing: layers run twice, and the gradients are the same to the bit."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    BertModel,
    ModernBertConfig,
    ModernBertModel,
    RobertaConfig,
    RobertaModel,
    Trainer,
    TrainingArguments,
)

from sparsebert import attach, gates, patterns, sparsify
from sparsebert.gates import Gate

SIZES: dict[str, Any] = {
    "vocab_size": 200,
    "hidden_size": 16,
    "num_hidden_layers": 4,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 300,
}
SPECIAL = {f"{name}_token_id": 1 for name in ("pad", "eos", "bos", "cls", "sep")}
MODELS: dict[str, Callable[[], Any]] = {
    "bert": lambda: BertModel(BertConfig(**SIZES)),
    "roberta": lambda: RobertaModel(RobertaConfig(**SIZES)),
    "modernbert": lambda: ModernBertModel(ModernBertConfig(**SIZES, **SPECIAL, local_attention=16)),
}
LENGTH = 270  # long enough for a structured gate to go its sparse way
GATES: dict[str, Callable[[], Gate]] = {
    "entries": lambda: gates.Unstructured(length=LENGTH, heads=2),
    "lines": lambda: gates.Structured(length=LENGTH, heads=2),
}
IDS = torch.randint(5, 200, (2, LENGTH), generator=torch.Generator().manual_seed(0))


def gradients(family: str, kind: str, checkpointing: bool) -> dict[str, Tensor]:
    torch.manual_seed(0)
    model = MODELS[family]().train()
    learned = dict(model.named_parameters())
    if kind in GATES:
        gate = GATES[kind]()
        attach(model, gate)
        gate.resample(seed=3, step=0)
        learned |= dict(gate.named_parameters(prefix="gate"))
    else:
        sparsify(model, patterns.window(LENGTH, radius=5))
    if checkpointing:
        model.gradient_checkpointing_enable()
    torch.manual_seed(1)  # of dropout
    model(IDS)[0].square().sum().backward()
    return {name: parameter.grad for name, parameter in learned.items() if parameter.grad is not None}


@pytest.mark.parametrize("family", MODELS)
@pytest.mark.parametrize("kind", ["pattern", *GATES])
def test_checkpointed_layers_have_the_same_gradients(family: str, kind: str) -> None:
    plain, again = gradients(family, kind, False), gradients(family, kind, True)
    assert plain.keys() == again.keys()
    assert all(torch.equal(plain[name], again[name]) for name in plain)
    assert kind == "pattern" or any(name.startswith("gate") and plain[name].abs().sum() > 0 for name in plain)


def test_a_trainer_trains_with_checkpointed_layers(tmp_path: Path) -> None:
    found = []
    for checkpointing in (False, True):
        torch.manual_seed(0)
        model = sparsify(BertForSequenceClassification(BertConfig(**SIZES)), patterns.window(40))
        rows = [{"input_ids": IDS[0, k : k + 40], "labels": k % 2} for k in range(8)]
        arguments = TrainingArguments(
            str(tmp_path),
            max_steps=2,
            gradient_checkpointing=checkpointing,
            save_strategy="no",
            report_to=[],
            seed=4,
            dataloader_pin_memory=False,
        )
        found.append(Trainer(model, arguments, train_dataset=rows).train().training_loss)
    assert found[0] == found[1]
