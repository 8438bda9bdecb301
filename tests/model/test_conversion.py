"""sparsify() on encoders that are not ours."""

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from transformers import (
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
    RobertaConfig,
    RobertaModel,
    T5Config,
    T5EncoderModel,
)

from sparsebert import Pattern, patterns, sparsify
from sparsebert.errors import ModelError

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
    outside = torch.zeros(pattern.keep().shape).masked_fill(~pattern.keep(), torch.finfo(torch.float32).min)[None]

    def with_pattern(
        module: Any, query: Any, key: Any, value: Any, attention_mask: Any, *args: Any, **kwargs: Any
    ) -> Any:
        return own(
            module, query, key, value, outside + (0 if attention_mask is None else attention_mask), *args, **kwargs
        )

    model.set_attn_implementation("eager")
    with monkeypatch.context() as patch:
        patch.setattr(module, "eager_attention_forward", with_pattern)
        return model(**padded_inputs()).last_hidden_state


@pytest.mark.parametrize("family", list(FAMILIES))
def test_a_sparse_encoder_equals_its_eager_self_with_the_pattern_cut_out(
    family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    model = FAMILIES[family]().eval()
    pattern = patterns.random(LENGTH, HEADS, sparsity=0.5, seed=3) | patterns.window(LENGTH, radius=0)
    expected = eager_states(model, pattern, monkeypatch)
    sparsify(model, pattern)
    found = model(**padded_inputs()).last_hidden_state
    real = padded_inputs()["attention_mask"].bool()
    assert (expected - found)[real].abs().max() < 1e-5
    dense = FAMILIES[family]().eval()
    dense.load_state_dict(model.state_dict())
    assert (dense(**padded_inputs()).last_hidden_state - found)[real].abs().max() > 1e-3


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


def test_a_family_without_a_sparse_class_refuses_to_be_saved(tmp_path: Path) -> None:
    model = sparsify(FAMILIES["roberta"]().eval(), patterns.star(LENGTH))
    with pytest.raises(ModelError, match="would come back dense"):
        model.save_pretrained(tmp_path)
    assert list(tmp_path.iterdir()) == []


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


def test_wrong_heads_and_long_inputs_are_refused() -> None:
    model = FAMILIES["bert"]().eval()
    with pytest.raises(ModelError, match="has 3 heads"):
        sparsify(model, patterns.star(LENGTH, heads=3))
    sparsify(model, patterns.star(8))
    with pytest.raises(Exception, match=r"rebuild it with pattern.at\(24\)"):
        model(**padded_inputs())


def test_transformers_is_the_version_that_was_tested() -> None:
    assert transformers.__version__.startswith("5.")
