"""Encoders in int8 and bfloat16: every family, with and without a pattern."""

import copy
from typing import Any

import pytest
import torch
import transformers

from sparsebert import attach, gates, load_model, patterns, quantize, sparsify, to_bfloat16, unsparsify
from sparsebert.errors import LayerError, ModelError
from sparsebert.layers import Int8Linear
from sparsebert.layers.bfloat16 import has_fast_bfloat16
from tests.model.cases import tiny, tokens
from tests.training.families import CONFIGS, LENGTH, WORDS

FAMILIES = sorted(CONFIGS)
WINDOW = patterns.window(LENGTH, radius=2)


def small(family: str) -> Any:
    torch.manual_seed(0)
    return getattr(transformers, f"{family}Model")(getattr(transformers, f"{family}Config")(**CONFIGS[family])).eval()


def inputs(family: str) -> dict[str, torch.Tensor]:
    ids = torch.randint(5, WORDS, (3, LENGTH), generator=torch.Generator().manual_seed(1))
    real = torch.ones_like(ids)
    real[1, 7:] = 0
    return {"input_ids": ids, "attention_mask": real}


@torch.no_grad()
def states(model: Any, given: dict[str, torch.Tensor]) -> torch.Tensor:
    found: torch.Tensor = model(**given)[0]
    return found[given["attention_mask"].bool()]


def distance(found: torch.Tensor, expected: torch.Tensor) -> float:
    return float((found - expected).norm() / expected.norm())


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_gives_nearly_what_it_gave_in_float32(family: str, sparse: bool) -> None:
    model, given = small(family), inputs(family)
    if sparse:
        sparsify(model, WINDOW)
    expected = states(model, given)
    assert quantize(model) is model
    assert distance(states(model, given), expected) < 0.02
    assert sum(isinstance(module, Int8Linear) for module in model.modules()) >= 8


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_a_dense_model_runs_the_attention_that_it_is_told_to(attention: str) -> None:
    model, given = small("Bert"), inputs("Bert")
    model.set_attn_implementation(attention)
    expected = states(model, given)
    assert distance(states(quantize(model), given), expected) < 0.02


def test_the_pattern_of_an_int8_model_can_be_changed() -> None:
    ids = {"input_ids": tokens(), "attention_mask": torch.ones_like(tokens())}
    model, other = tiny().eval(), tiny().eval()
    quantize(model).set_pattern(patterns.window(12, radius=1))
    quantize(other.set_pattern(patterns.window(12, radius=1)))
    assert torch.equal(states_of_logits(model, ids), states_of_logits(other, ids))


@torch.no_grad()
def states_of_logits(model: Any, given: dict[str, torch.Tensor]) -> torch.Tensor:
    logits: torch.Tensor = model(**given).logits
    return logits


def test_hidden_states_and_attention_weights_can_be_asked_for() -> None:
    model, given = small("Bert"), inputs("Bert")
    model.set_attn_implementation("eager")
    with torch.no_grad():
        expected = model(**given, output_hidden_states=True, output_attentions=True)
        found = quantize(model)(**given, output_hidden_states=True, output_attentions=True)
    assert len(found.hidden_states) == len(expected.hidden_states) == 3
    assert [each.shape for each in found.attentions] == [each.shape for each in expected.attentions]


@pytest.mark.parametrize("activation", ["gelu_new", "silu", "relu"])
def test_other_activations_are_run_as_they_are(activation: str) -> None:
    torch.manual_seed(0)
    config = transformers.BertConfig(**CONFIGS["Bert"], hidden_act=activation)
    model, given = transformers.BertModel(config).eval(), inputs("Bert")
    expected = states(model, given)
    assert distance(states(quantize(model), given), expected) < 0.02


def test_one_thread_gives_the_bits_of_two() -> None:
    model, given = quantize(small("Bert")), inputs("Bert")
    before = torch.get_num_threads()
    found = []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            found.append(states(model, given))
    finally:
        torch.set_num_threads(before)
    assert torch.equal(*found)


def test_a_copy_of_an_int8_model_runs_by_itself() -> None:
    model, given = quantize(small("Bert")), inputs("Bert")
    expected, twin = states(model, given), copy.deepcopy(model)
    for parameter in model.parameters():
        parameter.zero_()
    assert torch.equal(states(twin, given), expected)


def test_an_int8_model_does_not_train() -> None:
    model, given = quantize(small("Bert")), inputs("Bert")
    assert not model.training
    assert not any(parameter.requires_grad for parameter in model.parameters())
    with pytest.raises(LayerError, match="do not train"):
        model.train()(**given)


def test_what_cannot_be_quantised_is_refused_and_left_as_it_was() -> None:
    model = small("Bert")
    with pytest.raises(ModelError, match="not float32"):
        quantize(copy.deepcopy(model).to(torch.bfloat16))
    with pytest.raises(ModelError, match="int8 already"):
        quantize(quantize(copy.deepcopy(model)))
    with pytest.raises(ModelError, match="make it sparse first"):
        sparsify(quantize(copy.deepcopy(model)), WINDOW)
    with pytest.raises(ModelError, match="gate"):
        quantize(attach(copy.deepcopy(model), gates.Structured(LENGTH, 2)))
    broken, given = copy.deepcopy(model), inputs("Bert")
    broken.encoder.layer[1].output.dense.weight.data[0, 0] = float("inf")
    with pytest.raises(LayerError, match="not finite"):
        quantize(broken)
    assert not any(isinstance(module, Int8Linear) for module in broken.modules())
    assert states(model, given).isfinite().all()


def test_unsparsify_leaves_an_int8_model_dense_and_int8() -> None:
    model, given = small("Roberta"), inputs("Roberta")
    dense = quantize(copy.deepcopy(model))
    sparsify(model, WINDOW)
    unsparsify(quantize(model))
    assert distance(states(model, given), states(dense, given)) < 1e-3


@pytest.mark.skipif(not has_fast_bfloat16(), reason="this processor has no bfloat16")
def test_bfloat16_needs_no_autocast() -> None:
    model, given = small("Bert"), inputs("Bert")
    sparsify(model, WINDOW)
    expected = states(model, given)
    found = states(to_bfloat16(model), given)
    assert found.dtype is torch.bfloat16
    assert distance(found.float(), expected) < 0.02
    with pytest.raises(ModelError, match="int8 already"):
        to_bfloat16(quantize(load_model("scratch:tiny", vocab_size=50).eval()))
