"""Packed rows give every family's states of padded ones, to the bit in int8."""

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor

from sparsebert import attach, gates, load_model, patterns, quantize, sparsify
from sparsebert.attention.sparse_library import is_built
from sparsebert.errors import ModelError
from sparsebert.model.packing import packed_inputs, packing_obstacle
from tests.model.test_families import FAMILIES

LENGTHS = torch.tensor([30, 17, 17, 3])  # the first two beyond the pattern, which follows them
PATTERN = patterns.from_offsets(length=16, offsets=[[-1, 0, 1]], border=True)


def model_of(family: str) -> Any:
    name, sizes = FAMILIES[family]
    torch.manual_seed(0)
    return getattr(transformers, f"{name}Model")(getattr(transformers, f"{name}Config")(**sizes)).eval()


def both_ways(model: Any, ids: Tensor) -> tuple[Tensor, Tensor]:
    """The states of all real tokens, from padded rows and from a packed one."""
    real = torch.arange(ids.shape[1]) < LENGTHS[:, None]
    with torch.no_grad():
        padded = model(input_ids=ids.masked_fill(~real, model.config.pad_token_id), attention_mask=real.long())[0][real]
        packed = model(**packed_inputs(model, ids[real], LENGTHS))[0][0]
    return padded, packed


@pytest.mark.parametrize("family", FAMILIES)
def test_packed_rows_have_the_states_of_padded_ones(family: str) -> None:
    model = sparsify(model_of(family), PATTERN)
    ids = torch.randint(5, 60, (4, 30), generator=torch.Generator().manual_seed(0))
    assert packing_obstacle(model) is None
    torch.testing.assert_close(*both_ways(model, ids), atol=1e-5, rtol=0)


@pytest.mark.parametrize("family", ["roberta", "bert"])
def test_a_padding_token_inside_a_text_stands_where_the_family_puts_it(family: str) -> None:
    model = sparsify(model_of(family), PATTERN)
    ids = torch.randint(5, 60, (4, 30), generator=torch.Generator().manual_seed(0))
    ids[:, 1] = model.config.pad_token_id
    torch.testing.assert_close(*both_ways(model, ids), atol=1e-5, rtol=0)


@pytest.mark.skipif(not is_built(), reason="the C++ kernel was not built: no C++ compiler")
@pytest.mark.parametrize("pattern", [None, PATTERN], ids=["dense", "sparse"])
def test_int8_layers_give_packed_rows_the_same_bits(pattern: patterns.Pattern | None) -> None:
    model = load_model("scratch:tiny", vocab_size=60, initializer_range=0.3)
    model = quantize(model if pattern is None else model.set_pattern(pattern))
    ids = torch.randint(5, 60, (4, 30), generator=torch.Generator().manual_seed(0))
    padded, packed = both_ways(model, ids)
    if pattern is None:  # torch's own attention rounds a batch and a row of it differently
        torch.testing.assert_close(padded, packed, atol=0.05, rtol=0)
    else:
        assert torch.equal(padded, packed)


def test_a_packed_row_may_be_longer_than_the_table_of_positions_but_no_example() -> None:
    model = load_model("scratch:tiny", vocab_size=60, max_position_embeddings=32)
    ids = torch.randint(5, 60, (90,))
    with torch.no_grad():
        assert model(**packed_inputs(model, ids, torch.tensor([30, 30, 30])))[0].shape[:2] == (1, 90)
        with pytest.raises(ModelError, match="32 positions"):
            model(**packed_inputs(model, ids, torch.tensor([50, 40])))


def test_transformers_own_collator_makes_packed_rows() -> None:
    model = sparsify(model_of("bert"), PATTERN)
    rows = [torch.randint(5, 60, (length,)).tolist() for length in (9, 16, 4)]
    collator = transformers.DataCollatorWithFlattening(return_flash_attn_kwargs=True, return_tensors="pt")
    batch = collator([{"input_ids": row} for row in rows])
    batch.pop("labels")
    with torch.no_grad():
        packed = model(**batch)[0][0].split([9, 16, 4])
        for row, states in zip(rows, packed, strict=True):
            torch.testing.assert_close(model(torch.tensor([row]))[0][0], states, atol=1e-5, rtol=0)


def test_what_a_packed_row_cannot_have_is_refused() -> None:
    model = load_model("scratch:tiny", vocab_size=60)
    inputs = packed_inputs(model, torch.randint(5, 60, (12,)), torch.tensor([7, 5]))
    with pytest.raises(ModelError, match="has none"):
        model(**inputs, attention_mask=torch.tensor([[1] * 9 + [0] * 3]))
    with pytest.raises(ModelError, match="weights of a packed row"):
        model(**inputs, output_attentions=True)
    attach(model, gates.Structured(length=16, heads=int(model.config.num_attention_heads)))
    assert packing_obstacle(model) == "a gate is being learned in it"


def test_a_model_whose_attention_is_its_own_is_padded(tmp_path: Path) -> None:
    assert packing_obstacle(model_of("bert")) == "it runs attention of its own"
