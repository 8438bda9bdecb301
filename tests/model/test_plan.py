"""A model that has a pattern, or a gate, never runs without it unnoticed."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from transformers import BertConfig, BertModel, DistilBertModel

from sparsebert import Pattern, attach, detach, gates, load_model, patterns, sparsify
from sparsebert.attention import AttentionArguments
from sparsebert.errors import ModelError

N = 12
SIZES: dict[str, Any] = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
TOKENS = torch.randint(5, 60, (2, N), generator=torch.Generator().manual_seed(0))


def of_our_class() -> Any:
    return load_model("scratch:tiny", "masked_lm", vocab_size=60, pattern=patterns.window(N), **SIZES).eval()


def sparsified() -> Any:
    return sparsify(BertModel(BertConfig(vocab_size=60, **SIZES)).eval(), patterns.window(N))


def with_a_gate() -> Any:
    return attach(BertModel(BertConfig(vocab_size=60, **SIZES)).eval(), gates.Soft(length=N, heads=2))


@pytest.mark.parametrize("name", ["sdpa", "eager", {"": "sdpa"}])
@pytest.mark.parametrize("make", [of_our_class, sparsified, with_a_gate])
def test_another_attention_is_refused_and_the_model_stays_sparse(make: Callable[[], Any], name: Any) -> None:
    model = make()
    before = model(input_ids=TOKENS)[0]
    with pytest.raises(ModelError, match=r"unsparsify\(model\)"):
        model.set_attn_implementation(name)
    assert torch.equal(model(input_ids=TOKENS)[0], before)


@pytest.mark.parametrize("make", [of_our_class, sparsified, with_a_gate])
def test_a_configuration_that_leads_to_another_attention_is_refused_when_the_model_runs(
    make: Callable[[], Any],
) -> None:
    model = make()
    before = model(input_ids=TOKENS)[0]
    for change in (
        lambda: setattr(model.config, "_attn_implementation", "sdpa"),
        lambda: BertModel.set_attn_implementation(model.base_model, "eager"),
    ):
        change()
        with pytest.raises(ModelError, match="would run this model dense"):
            model(input_ids=TOKENS)
        model.set_attn_implementation("sparsebert")
        assert torch.equal(model(input_ids=TOKENS)[0], before)


def test_a_model_without_a_pattern_may_run_any_attention() -> None:
    model = of_our_class().set_pattern(None)
    before = model(input_ids=TOKENS)[0]
    model.set_attn_implementation("eager")
    torch.testing.assert_close(model(input_ids=TOKENS)[0], before, atol=1e-5, rtol=1e-5)
    model.set_pattern(patterns.window(N))
    with pytest.raises(ModelError, match="would run this model dense"):
        model(input_ids=TOKENS)


def test_a_decoder_is_refused_whenever_it_becomes_one() -> None:
    for name in ("is_decoder", "is_encoder_decoder"):
        config = copy.deepcopy(of_our_class().config)
        with pytest.raises(ModelError, match="decoder"):
            type(config)(**{**config.to_dict(), "use_cache": False, name: True})
    model = sparsified()
    model.config.is_decoder = True
    with pytest.raises(ModelError, match="decoder"):
        model(input_ids=TOKENS)


def test_a_configuration_brings_its_pattern_along() -> None:
    sparse = of_our_class().set_pattern(patterns.from_keep(patterns.window(N).keep()))
    bare = type(sparse)(copy.deepcopy(sparse.config)).eval()
    bare.load_state_dict(sparse.state_dict())
    assert bare.pattern == sparse.pattern
    assert torch.equal(bare.bert(input_ids=TOKENS)[0], sparse.bert(input_ids=TOKENS)[0])


def test_a_model_without_the_entries_of_its_pattern_refuses_to_run() -> None:
    sparse = of_our_class()
    told = {**sparse.config.to_dict(), "use_cache": False}
    model = type(sparse)(type(sparse.config)(**told)).eval()
    for use in (lambda: model(input_ids=TOKENS), lambda: model.bert(input_ids=TOKENS), lambda: model.pattern):
        with pytest.raises(ModelError, match="entries were not loaded"):
            use()
    assert model.set_pattern(sparse.pattern)(input_ids=TOKENS)[0].isfinite().all()


def with_pattern_among_weights(model: Any) -> dict[str, torch.Tensor]:
    """Weights as earlier versions had them, and checkpoints of runs that they began."""
    rows = {"row_starts": model.pattern.row_starts, "keys": model.pattern.keys}
    return model.state_dict() | {f"bert.pattern_{name}": torch.tensor(array) for name, array in rows.items()}


def test_weights_of_an_earlier_version_load_and_bring_the_pattern_where_it_is_not_known() -> None:
    sparse = of_our_class()
    model = type(sparse)(type(sparse.config)(**{**sparse.config.to_dict(), "use_cache": False})).eval()
    model.load_state_dict(with_pattern_among_weights(sparse))
    assert model.pattern == sparse.pattern
    assert torch.equal(model(input_ids=TOKENS)[0], sparse(input_ids=TOKENS)[0])


def test_weights_that_bring_another_pattern_are_refused() -> None:
    model = of_our_class()
    state = with_pattern_among_weights(model)
    first_row = state["bert.pattern_keys"][:2]
    assert first_row.tolist() == [0, 1]
    state["bert.pattern_keys"] = torch.cat([torch.tensor([0, 2], dtype=torch.int32), state["bert.pattern_keys"][2:]])
    with pytest.raises(ModelError, match="not the one its configuration names"):
        model.load_state_dict(state)


def test_a_copy_of_a_model_with_a_gate_draws_from_the_copied_gate() -> None:
    model = with_a_gate()
    model(input_ids=TOKENS)
    twin = copy.deepcopy(model)
    assert twin.sparse_plan.gate is not model.sparse_plan.gate
    twin.train()(input_ids=TOKENS)
    assert twin.sparse_plan.gate.training
    assert not model.sparse_plan.gate.training


def test_an_unknown_backend_is_refused_before_anything_is_built() -> None:
    with pytest.raises(ModelError, match="no backend 'nope'"):
        load_model("scratch:tiny", vocab_size=60, attention_backend="nope", **SIZES)
    with pytest.raises(ModelError, match="no backend 'nope'"):
        sparsify(BertModel(BertConfig(vocab_size=60, **SIZES)), patterns.window(N), backend="nope")


class _Recording(gates.Soft):
    """A gate that notes which layers ask it."""

    def attention_arguments(self, pattern: Pattern | None, layer: int) -> AttentionArguments:
        self.asked.append(layer)
        return super().attention_arguments(pattern, layer)


@pytest.mark.parametrize("model_class", [BertModel, DistilBertModel])
def test_each_layer_asks_the_gate_for_its_own_arguments_after_the_plan_has_made_all_of_them(model_class: Any) -> None:
    gate = _Recording(length=N, heads=2)
    gate.asked = []
    sizes = SIZES if model_class is BertModel else {"dim": 16, "hidden_dim": 16, "n_layers": 2, "n_heads": 2}
    model = attach(model_class(model_class.config_class(vocab_size=60, **sizes)), gate)
    gate.asked.clear()
    model(input_ids=TOKENS)
    assert gate.asked == [0, 1, 0, 1]
    detach(model)
    assert not any("sparse_layer" in vars(module) for module in model.modules())
