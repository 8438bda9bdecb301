"""sparsify() on encoders that are not ours."""

import itertools
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from transformers import (
    AlbertConfig,
    AlbertModel,
    BertConfig,
    BertModel,
    DebertaV2Config,
    DebertaV2Model,
    DistilBertConfig,
    DistilBertModel,
    ElectraConfig,
    ElectraModel,
    GPT2Config,
    GPT2Model,
    ModernBertConfig,
    ModernBertModel,
    NomicBertConfig,
    NomicBertModel,
    RobertaConfig,
    RobertaModel,
    T5Config,
    T5EncoderModel,
)

from sparsebert import Pattern, attach, detach, gates, load_model, patterns, sparsify, unsparsify
from sparsebert.errors import ModelError, PatternError
from tests.model.cases import snapshot, tiny, tokens

LENGTH, HEADS = 24, 4
SIZES = {
    "vocab_size": 60,
    "num_hidden_layers": 2,
    "hidden_size": 32,
    "num_attention_heads": HEADS,
    "intermediate_size": 48,
}
FAMILIES: dict[str, Any] = {
    "bert": lambda: BertModel(BertConfig(**SIZES)),
    "roberta": lambda: RobertaModel(RobertaConfig(**SIZES)),
    "electra": lambda: ElectraModel(ElectraConfig(**SIZES, embedding_size=16)),
    "distilbert": lambda: DistilBertModel(
        DistilBertConfig(vocab_size=60, n_layers=2, dim=32, n_heads=HEADS, hidden_dim=48)
    ),
    "modernbert": lambda: ModernBertModel(
        ModernBertConfig(**SIZES, global_attn_every_n_layers=2, local_attention=8, pad_token_id=0)
    ),
    "nomic_bert": lambda: NomicBertModel(NomicBertConfig(**SIZES)),
    "albert": lambda: AlbertModel(AlbertConfig(**SIZES, embedding_size=16)),
}


def padded_inputs() -> dict[str, torch.Tensor]:
    tokens = torch.randint(5, 60, (2, LENGTH), generator=torch.Generator().manual_seed(0))
    real = torch.ones_like(tokens)
    real[1, 17:] = 0
    return {"input_ids": tokens, "attention_mask": real}


def eager_states(model: Any, pattern: Pattern, monkeypatch: pytest.MonkeyPatch) -> torch.Tensor:
    """The family's own eager attention, with the pattern cut out of every layer's scores by hand."""
    module = __import__(type(model).__module__, fromlist=["eager_attention_forward"])
    own = module.eager_attention_forward
    called = itertools.count()

    def with_pattern(
        module: Any, query: Any, key: Any, value: Any, attention_mask: Any, *args: Any, **kwargs: Any
    ) -> Any:
        keep = pattern.layer(next(called)).keep()
        outside = torch.zeros(keep.shape).masked_fill(~keep, torch.finfo(torch.float32).min)[None]
        return own(
            module, query, key, value, outside + (0 if attention_mask is None else attention_mask), *args, **kwargs
        )

    model.set_attn_implementation("eager")
    with monkeypatch.context() as patch:
        patch.setattr(module, "eager_attention_forward", with_pattern)
        return model(**padded_inputs()).last_hidden_state


def drawn(seed: int) -> Pattern:
    return patterns.random(LENGTH, HEADS, sparsity=0.5, seed=seed) | patterns.window(LENGTH, radius=0)


SHARED, OWN = drawn(3), patterns.per_layer([drawn(3), drawn(4)])


@pytest.mark.parametrize(
    ("family", "pattern"),
    [(family, SHARED) for family in FAMILIES] + [(family, OWN) for family in FAMILIES if family != "albert"],
)
def test_a_sparse_encoder_equals_its_eager_self_with_the_pattern_cut_out(
    family: str, pattern: Pattern, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    model = FAMILIES[family]().eval()
    expected = eager_states(model, pattern, monkeypatch)
    sparsify(model, pattern)
    found = model(**padded_inputs()).last_hidden_state
    real = padded_inputs()["attention_mask"].bool()
    assert (expected - found)[real].abs().max() < 1e-5
    dense = FAMILIES[family]().eval()
    dense.load_state_dict(model.state_dict())
    assert (dense(**padded_inputs()).last_hidden_state - found)[real].abs().max() > 1e-3


@torch.no_grad()
def test_a_model_that_became_sparse_still_gives_its_hidden_states() -> None:
    class Own(ElectraModel):
        """A class of which no sparse model was ever built."""

    model = sparsify(Own(ElectraConfig(**SIZES, embedding_size=16)).eval(), patterns.window(LENGTH, radius=2))
    assert len(model(tokens(), output_hidden_states=True).hidden_states) == 3


@pytest.mark.parametrize(
    "model",
    [
        lambda: GPT2Model(GPT2Config(vocab_size=60, n_embd=32, n_head=4, n_layer=1)),
        lambda: T5EncoderModel(T5Config(vocab_size=60, d_model=32, num_heads=4, num_layers=1, d_ff=48, d_kv=8)),
        lambda: DebertaV2Model(DebertaV2Config(**SIZES, relative_attention=True, pos_att_type=["c2p"])),
        lambda: BertModel(BertConfig(**SIZES, is_decoder=True)),
        lambda: torch.nn.Linear(2, 2),
    ],
    ids=["gpt2", "t5", "deberta", "bert-decoder", "no-model"],
)
def test_models_that_cannot_take_a_pattern_are_refused(model: Any) -> None:
    with pytest.raises(ModelError):
        sparsify(model().eval(), patterns.star(LENGTH))


def test_layers_that_share_their_attention_take_one_pattern_alone() -> None:
    model = FAMILIES["albert"]().eval()
    before = snapshot(model)
    with pytest.raises(ModelError, match="the 2 layers of AlbertModel share 1 attention"):
        sparsify(model, OWN)
    assert snapshot(model) == before


def test_a_pattern_with_other_layers_than_the_model_is_refused() -> None:
    with pytest.raises(ModelError, match="3 layers but the model has 2; use 1 or 2"):
        sparsify(FAMILIES["bert"](), patterns.per_layer([SHARED] * 3))


def test_a_gate_is_not_learned_inside_a_pattern_with_layers_but_in_place_of_it() -> None:
    model, gate = sparsify(FAMILIES["bert"](), OWN), gates.Soft(length=LENGTH, heads=HEADS)
    with pytest.raises(PatternError, match="one layer and this one has 2"):
        attach(model, gate, inside=True)
    before = model.eval()(**padded_inputs()).last_hidden_state
    assert torch.equal(detach(attach(model, gate, inside=False))(**padded_inputs()).last_hidden_state, before)


def test_a_second_pattern_replaces_the_first() -> None:
    model = sparsify(FAMILIES["bert"]().eval(), patterns.star(LENGTH))
    first = model(**padded_inputs()).last_hidden_state
    sparsify(model, patterns.window(LENGTH))
    assert not torch.equal(first, model(**padded_inputs()).last_hidden_state)


@pytest.mark.parametrize(
    ("padding", "words"),
    [
        (torch.tensor([[0, 1, 1]]), "run of ones"),
        (torch.tensor([[1, 0, 1]]), "run of ones"),
        (torch.ones(1, 1, 3, 3), "shape"),
    ],
)
def test_padding_that_is_not_a_run_of_ones_is_refused(padding: torch.Tensor, words: str) -> None:
    model = sparsify(FAMILIES["bert"]().eval(), patterns.star(3))
    with pytest.raises(ModelError, match=words):
        model(input_ids=torch.tensor([[7, 8, 9]]), attention_mask=padding)


@pytest.mark.parametrize("pattern", [patterns.star(LENGTH, heads=3), None, "star", patterns.star(LENGTH).keep()])
def test_what_is_no_pattern_of_the_model_is_refused_and_the_model_stays_as_it_was(pattern: Any, tmp_path: Path) -> None:
    model = FAMILIES["bert"]().train()
    before = snapshot(model)
    with pytest.raises(ModelError, match="pattern"):
        sparsify(model, pattern)
    assert snapshot(model) == before
    model.save_pretrained(tmp_path)
    assert type(BertModel.from_pretrained(tmp_path)) is BertModel


@pytest.mark.parametrize("broken", [False, True], ids=["other outputs", "an error"])
def test_a_model_that_fails_the_probe_stays_as_it_was(broken: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    model = FAMILIES["bert"]().train()
    before, modes = snapshot(model), [module.training for module in model.modules()]
    values: list[float] = []

    def states(*_: Any, **__: Any) -> Any:
        values.append(float(len(values)))
        if broken and len(values) == 2:
            raise IndexError("out of range")
        return [torch.full((2, 7, 4), values[-1])]

    monkeypatch.setattr("sparsebert.model.probe.functional_call", states)
    with pytest.raises(ModelError, match="out of range" if broken else "differ by 1"):
        sparsify(model, patterns.star(LENGTH))
    assert snapshot(model) == before
    assert [module.training for module in model.modules()] == modes


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
@pytest.mark.parametrize("family", list(FAMILIES))
def test_a_model_of_any_float_type_takes_a_pattern(family: str, dtype: torch.dtype) -> None:
    model = FAMILIES[family]().to(dtype).eval()
    types = [tensor.dtype for tensor in model.state_dict().values()]
    states = sparsify(model, patterns.star(LENGTH))(**padded_inputs()).last_hidden_state
    assert states.dtype == dtype
    assert states.isfinite().all()
    assert [tensor.dtype for tensor in model.state_dict().values()] == types


@pytest.mark.parametrize("family", list(FAMILIES))
def test_unsparsify_gives_a_model_its_own_attention_back(family: str) -> None:
    model = FAMILIES[family]().eval()
    before, states = snapshot(model), model(**padded_inputs()).last_hidden_state
    assert not torch.equal(sparsify(model, patterns.star(LENGTH))(**padded_inputs()).last_hidden_state, states)
    assert unsparsify(model) is model
    assert snapshot(model) == before
    assert torch.equal(model(**padded_inputs()).last_hidden_state, states)
    assert unsparsify(model) is model


def test_unsparsify_takes_the_pattern_of_a_sparse_class() -> None:
    model = tiny().eval()
    dense = model(input_ids=tokens()).logits
    sparsify(model, patterns.star(12))
    assert not torch.equal(model(input_ids=tokens()).logits, dense)
    assert unsparsify(model).pattern is None
    assert torch.equal(model(input_ids=tokens()).logits, dense)


def test_weights_handed_to_save_pretrained_are_the_ones_saved_with_the_pattern(tmp_path: Path) -> None:
    model = sparsify(FAMILIES["bert"](), patterns.star(LENGTH))
    weights = {name: torch.zeros_like(tensor) for name, tensor in model.state_dict().items()}
    model.save_pretrained(tmp_path, state_dict=weights)
    again = load_model(tmp_path)
    assert again.pattern == patterns.star(LENGTH)
    assert not any(weight.any() for weight in again.parameters())


def test_long_inputs_are_refused_where_the_pattern_has_no_rule() -> None:
    model = sparsify(FAMILIES["bert"]().eval(), patterns.from_keep(patterns.star(8).keep()))
    with pytest.raises(Exception, match="no rule for longer ones"):
        model(**padded_inputs())


def test_transformers_is_the_version_that_was_tested() -> None:
    assert transformers.__version__.startswith("5.")
