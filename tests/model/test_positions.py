"""Longer inputs than the table of positions."""

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import ModernBertConfig, ModernBertModel, RobertaConfig, RobertaModel

from sparsebert import extend_positions, load_model, patterns
from sparsebert.errors import ModelError


@pytest.fixture
def model() -> Any:
    return load_model("scratch:tiny", "masked_lm", vocab_size=50, pattern=patterns.star(700)).eval()


def test_an_input_beyond_the_table_raises_and_names_the_way_out(model: Any) -> None:
    with pytest.raises(ModelError, match=r"extend_positions\(model, 600\)"):
        model(input_ids=torch.ones(1, 600, dtype=torch.long))


@pytest.mark.parametrize("how", ["tile", "interpolate"])
def test_extended_positions_are_saved_with_the_model(model: Any, how: Any, tmp_path: Path) -> None:
    short = torch.arange(1, 40).view(1, 39)
    before = model(input_ids=short).logits
    extend_positions(model, 700, how)
    model.save_pretrained(tmp_path)
    again = load_model(str(tmp_path), "masked_lm").eval()
    long = torch.arange(700).view(1, 700) % 50
    assert torch.equal(again(input_ids=long).logits, model(input_ids=long).logits)
    if how == "tile":
        assert torch.equal(model(input_ids=short).logits, before)


def test_tiling_repeats_and_interpolation_keeps_the_ends(model: Any) -> None:
    table = model.bert.embeddings.position_embeddings.weight.detach().clone()
    extend_positions(model, 600)
    tiled = model.bert.embeddings.position_embeddings.weight
    assert torch.equal(tiled[512:], table[:88])
    other = load_model("scratch:tiny", "masked_lm", vocab_size=50)
    table = other.bert.embeddings.position_embeddings.weight.detach().clone()
    stretched = extend_positions(other, 1023, "interpolate").bert.embeddings.position_embeddings.weight
    torch.testing.assert_close(stretched[::2], table)


def test_robertas_reserved_rows_stay_in_front() -> None:
    config = RobertaConfig(
        vocab_size=50,
        num_hidden_layers=1,
        hidden_size=32,
        num_attention_heads=4,
        intermediate_size=48,
        max_position_embeddings=18,
    )
    model = extend_positions(RobertaModel(config).eval(), 32)
    assert model.embeddings.position_embeddings.num_embeddings == 34
    assert model(input_ids=torch.full((1, 32), 7)).last_hidden_state.shape == (1, 32, 32)


def test_nonsense_is_refused(model: Any) -> None:
    with pytest.raises(ModelError, match="already has 512"):
        extend_positions(model, 100)
    with pytest.raises(ModelError, match="expected 'tile'"):
        extend_positions(model, 600, "stretch")  # type: ignore[arg-type]
    rotating = ModernBertModel(
        ModernBertConfig(
            vocab_size=50,
            num_hidden_layers=1,
            hidden_size=32,
            num_attention_heads=4,
            intermediate_size=48,
            pad_token_id=0,
        )
    )
    with pytest.raises(ModelError, match="no table of positions"):
        extend_positions(rotating, 600)
