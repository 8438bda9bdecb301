"""attach(): a gate inside a model, in one's own loop and in transformers' Trainer."""

from typing import Any

import pytest
import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

from sparsebert import attach, detach, gates, load_model, patterns
from sparsebert.errors import GateError
from sparsebert.model import running
from sparsebert.model.trainer_callback import GateCallback

TINY: dict[str, Any] = {
    "num_hidden_layers": 2,
    "hidden_size": 16,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    # Large enough for attention to matter: at the usual 0.02 a pattern changes the fifth digit of the logits.
    "initializer_range": 0.5,
}


def tiny(**changes: Any) -> Any:
    return load_model("scratch:tiny", "sequence_classification", vocab_size=50, seed=0, **{**TINY, **changes})


def tokens(rows: int = 4, n: int = 12) -> torch.Tensor:
    return torch.randint(0, 50, (rows, n), generator=torch.Generator().manual_seed(0))


def test_a_gate_of_ones_changes_nothing() -> None:
    model, gate = tiny().eval(), gates.Soft(length=12, heads=2)
    before = model(input_ids=tokens()).logits
    with torch.no_grad():
        gate.alpha.fill_(50.0)
    torch.testing.assert_close(attach(model, gate)(input_ids=tokens()).logits, before)


@pytest.mark.parametrize("kind", [gates.Structured, gates.Unstructured, gates.Soft])
def test_a_frozen_gate_gives_what_the_hard_gate_gave(kind: Any) -> None:
    gate = kind(length=12, heads=2)
    with torch.no_grad():
        gate.alpha += 40.0 * torch.randn(gate.alpha.shape, generator=torch.Generator().manual_seed(1)).sign()
    model = attach(tiny().eval(), gate)
    soft = model(input_ids=tokens()).logits
    hard = detach(model).set_pattern(gate.freeze())(input_ids=tokens()).logits
    torch.testing.assert_close(soft, hard, atol=1e-5, rtol=1e-5)


def test_every_training_forward_draws_anew_unless_resampled_and_evaluation_draws_nothing() -> None:
    model, gate = tiny(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0), gates.Structured(length=12, heads=2)
    attach(model, gate)
    first, second = (model.train()(input_ids=tokens()).logits for _ in range(2))
    assert not torch.equal(first, second)
    same = []
    for _ in range(2):
        gate.resample(7, 3)
        same.append(model(input_ids=tokens()).logits)
    assert torch.equal(same[0], same[1])
    quiet = [model.eval()(input_ids=tokens()).logits for _ in range(2)]
    assert torch.equal(quiet[0], quiet[1])


def test_the_three_lines_of_a_loop_of_ones_own_learn_alpha() -> None:
    model, gate = tiny(), gates.Structured(length=12, heads=2, sparsity=0.6, steps=3)
    attach(model, gate)
    groups = [{"params": list(model.parameters())}]
    groups += [{name: group[name] for name in ("params", "lr")} for group in gate.parameter_groups(1e-3)]
    optimiser = torch.optim.AdamW(groups, lr=1e-3)
    before = gate.alpha.detach().clone()
    for step in range(3):
        loss = model(input_ids=tokens(), labels=torch.tensor([0, 1, 0, 1])).loss + gate.penalty()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        gate.after_step(step)
    assert (gate.alpha != before).all()
    assert gate.freeze().sparsity == pytest.approx(0.6, abs=0.08)


def test_a_dense_model_of_transformers_can_be_attached_and_detached() -> None:
    torch.manual_seed(0)
    model = BertForSequenceClassification(BertConfig(vocab_size=50, **TINY)).eval()
    before = model(input_ids=tokens()).logits
    gate = gates.Structured(length=12, heads=2)
    with torch.no_grad():
        gate.alpha.fill_(-50.0)
    during = attach(model, gate)(input_ids=tokens()).logits
    assert not torch.allclose(before, during)
    torch.testing.assert_close(detach(model)(input_ids=tokens()).logits, before)


def test_a_token_anchored_gate_keeps_the_border_of_the_true_last_token() -> None:
    gate = gates.Structured(length=12, heads=2, anchor="token")
    with torch.no_grad():
        gate.alpha.fill_(-50.0)
    short, model = tokens(1, 5), attach(tiny().eval(), gate)
    alone = model(input_ids=short).logits
    detach(model).set_pattern(patterns.border(5))
    torch.testing.assert_close(alone, model(input_ids=short).logits, atol=1e-5, rtol=1e-5)


def test_another_pattern_runs_for_the_length_of_a_with_block() -> None:
    model = tiny().eval()
    before = model(input_ids=tokens()).logits
    with running(model, patterns.window(12)):
        assert not torch.allclose(model(input_ids=tokens()).logits, before)
    assert torch.equal(model(input_ids=tokens()).logits, before)
    assert model.pattern is None


def test_a_gate_of_other_heads_is_refused() -> None:
    with pytest.raises(GateError, match="3 heads"):
        attach(tiny(), gates.Structured(length=12, heads=3))


@pytest.mark.parametrize("settings", ["default", "paper"])
def test_the_trainer_of_transformers_learns_a_gate_through_the_callback(tmp_path: Any, settings: str) -> None:
    gate = gates.Structured(length=12, heads=2, sparsity=0.6, settings=settings, rate=0.1)
    before = gate.alpha.detach().clone()
    rows = [{"input_ids": row, "labels": torch.tensor(number % 2)} for number, row in enumerate(tokens(8))]
    arguments = TrainingArguments(
        str(tmp_path),
        max_steps=4,
        per_device_train_batch_size=2,
        gradient_accumulation_steps=2,
        report_to="none",
        save_strategy="no",
        disable_tqdm=True,
        use_cpu=True,
        dataloader_pin_memory=False,
    )
    model = tiny()
    Trainer(model=model, args=arguments, train_dataset=rows, callbacks=[GateCallback(gate)]).train()
    assert gate.steps == 4
    assert int(gate.step) == 4
    assert not torch.equal(gate.alpha, before)
    assert model._plan.gate is None
