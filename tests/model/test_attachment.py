"""attach(): a gate inside a model, in one's own loop."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from transformers import BertConfig, BertForSequenceClassification, ModernBertConfig, ModernBertModel

from sparsebert import attach, detach, gates, patterns, sparsify, unsparsify
from sparsebert.errors import GateError, ModelError
from sparsebert.model import running
from tests.model.cases import TINY, snapshot, tiny, tokens


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


def test_a_gate_for_a_model_that_has_a_pattern_asks_what_is_meant() -> None:
    model = tiny().set_pattern(patterns.star(12))
    with pytest.raises(GateError, match=r"inside=True\) learns inside it, .*inside=False\) in place of it"):
        attach(model, gates.Structured(length=12, heads=2))
    assert model.sparse_plan.gate is None
    attach(tiny().set_pattern(patterns.full(12)), gates.Structured(length=12, heads=2))


def gradient(model: Any, gate: gates.Gate) -> torch.Tensor:
    model.train()(input_ids=tokens(), labels=torch.tensor([0, 1, 0, 1])).loss.backward()
    found = next(gate.parameters()).grad
    assert found is not None
    return found


def test_a_gate_in_place_of_a_pattern_learns_everywhere_and_the_pattern_comes_back() -> None:
    model = tiny(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0).set_pattern(patterns.star(12)).eval()
    before = model(input_ids=tokens()).logits
    gate = gates.Unstructured(length=12, heads=2)
    assert (gradient(attach(model, gate, inside=False), gate) != 0).all()
    assert model.pattern == patterns.star(12)
    assert torch.equal(detach(model).eval()(input_ids=tokens()).logits, before)


def test_a_gate_inside_a_pattern_learns_there_and_freezes_there() -> None:
    star = patterns.star(12)
    model = tiny(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0).set_pattern(star)
    gate = gates.Unstructured(length=12, heads=2)
    learned = gradient(attach(model, gate, inside=True), gate)[0] != 0
    assert learned.tolist() == np.isin(np.arange(78), gate.units_of(star.entries())).tolist()
    frozen = gate.freeze(sparsity=0.8)
    assert frozen & star == frozen
    detach(model)
    attach(tiny(), gate)
    assert gate.inside is None


def test_detaching_leaves_a_model_of_transformers_as_it_was(tmp_path: Path) -> None:
    model = BertForSequenceClassification(BertConfig(vocab_size=50, **TINY)).train()
    model.bert.encoder.eval()  # modes of its own
    before, modes = snapshot(model), [module.training for module in model.modules()]
    attach(model, gates.Structured(length=12, heads=2))
    detach(model)
    assert snapshot(model) == before
    assert [module.training for module in model.modules()] == modes
    model.save_pretrained(tmp_path)
    assert type(BertForSequenceClassification.from_pretrained(tmp_path)) is BertForSequenceClassification


def test_a_model_with_a_gate_alone_is_saved_dense(tmp_path: Path) -> None:
    model = attach(BertForSequenceClassification(BertConfig(vocab_size=50, **TINY)), gates.Soft(length=12, heads=2))
    model.save_pretrained(tmp_path)
    again = BertForSequenceClassification.from_pretrained(tmp_path)
    assert torch.equal(again.classifier.weight, model.classifier.weight)


def test_a_gate_that_is_refused_leaves_the_model_as_it_was() -> None:
    model = BertForSequenceClassification(BertConfig(vocab_size=50, **TINY))
    before = snapshot(model)
    for gate in (gates.Structured(length=12, heads=3), "structured", None):
        with pytest.raises(GateError):
            attach(model, gate)  # type: ignore[arg-type]
    assert snapshot(model) == before


@pytest.mark.parametrize("path", ["dense", "sparse"])
def test_layers_that_look_only_so_far_take_a_gate_without_a_pattern(path: str) -> None:
    torch.manual_seed(0)
    sizes = {**TINY, "vocab_size": 50, "global_attn_every_n_layers": 2, "local_attention": 4, "pad_token_id": 0}
    sizes |= {"initializer_range": 0.02}
    model = ModernBertModel(ModernBertConfig(**sizes)).eval()
    before = model(input_ids=tokens())[0]
    gate = gates.Structured(length=12, heads=2, path=path)
    with torch.no_grad():
        gate.alpha.fill_(50.0)
    torch.testing.assert_close(attach(model, gate)(input_ids=tokens())[0], before, atol=1e-5, rtol=1e-5)
    assert unsparsify(model) is model
    assert torch.equal(model(input_ids=tokens())[0], before)
    sparsify(model, patterns.star(12).anchored("token"))
    with pytest.raises(ModelError, match="use anchor='position'"):
        model(input_ids=tokens())


@pytest.mark.parametrize("inside", [True, False])
def test_a_pattern_given_under_the_hands_of_a_gate_is_refused(inside: bool) -> None:
    model = attach(tiny().set_pattern(patterns.star(12)), gates.Soft(length=12, heads=2), inside=inside)
    for give in (model.set_pattern, lambda pattern: sparsify(model, pattern)):
        with pytest.raises(ModelError, match=r"call detach\(model\)"):
            give(patterns.window(12))
    assert detach(model).pattern == patterns.star(12)


class Wrapped(nn.Module):
    """A model inside another module that passes on what it does not have, as adapters do."""

    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self._modules["inner"], name)


def test_a_wrapped_model_is_made_dense_and_sparse_like_the_model_inside() -> None:
    ours = tiny().set_pattern(patterns.star(12))
    theirs = sparsify(BertForSequenceClassification(BertConfig(vocab_size=50, **TINY)), patterns.star(12))
    for model in (ours, theirs):
        wrapped = Wrapped(model)
        detach(attach(wrapped, gates.Soft(length=12, heads=2), inside=False))
        sparsify(wrapped, patterns.window(12))
        assert model.sparse_plan.pattern == patterns.window(12)
        unsparsify(wrapped)
    assert ours.pattern is None
    assert theirs.config._attn_implementation == "sdpa"
