"""A head for whole texts reads the first token or the mean of the tokens, whatever the family, and is saved as such."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from sparsebert import load_model, patterns
from sparsebert.errors import ModelError
from sparsebert.files import read_json
from sparsebert.model.head_pooling import pooled
from sparsebert.model.heads import encoder_states_changed
from sparsebert.model.saving import no_bar
from tests.training.families import CONFIGS, WORDS, small_model

IDS = torch.randint(5, WORDS, (3, 9), generator=torch.Generator().manual_seed(0))
REAL = (torch.arange(9) < torch.tensor([9, 4, 6])[:, None]).long()
HEADS = {"SequenceClassification": "sequence_classification", "MultipleChoice": "multiple_choice"}


def logits(model: Any, head: str = "SequenceClassification") -> Tensor:
    shape = (-1, 1, 9) if head == "MultipleChoice" else (-1, 9)
    with torch.no_grad():
        found: Tensor = model.eval()(input_ids=IDS.view(shape), attention_mask=REAL.view(shape)).logits
    return found


@pytest.fixture(params=[(family, head) for family in CONFIGS for head in HEADS], ids="-".join)
def folder(request: Any, tmp_path: Path) -> tuple[Path, str]:
    family, head = request.param
    torch.manual_seed(0)
    model = small_model(family, head)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)  # scores that differ from token to token
    with no_bar():
        model.save_pretrained(tmp_path / "model")
    return tmp_path / "model", head


def test_the_head_does_to_the_mean_what_it_does_to_the_first_token(folder: tuple[Path, str]) -> None:
    path, head = folder
    mean = logits(load_model(path, HEADS[head], head_pooling="mean"), head)  # type: ignore[arg-type]
    first = load_model(path, HEADS[head], head_pooling="cls").eval()  # type: ignore[arg-type]
    assert torch.equal(logits(first, head), logits(load_model(path, HEADS[head]), head))  # type: ignore[arg-type]
    assert not torch.allclose(mean, logits(first, head), atol=1e-3)

    def all_alike(states: Tensor) -> Tensor:
        return pooled(states, REAL.float(), "mean")[:, None].expand_as(states)

    pooler = getattr(first.base_model, "pooler", None)
    if pooler is None:
        with encoder_states_changed(first, all_alike):
            expected = logits(first, head)
    else:
        hook = pooler.register_forward_pre_hook(lambda _, given: (all_alike(given[0]),))
        expected = logits(first, head)
        hook.remove()
    torch.testing.assert_close(mean, expected, atol=1e-5, rtol=1e-5)


def test_it_is_saved_with_the_model_and_comes_back(folder: tuple[Path, str], tmp_path: Path) -> None:
    path, head = folder
    model = load_model(path, HEADS[head], head_pooling="mean", pattern=patterns.window(12, radius=2))  # type: ignore[arg-type]
    with no_bar():
        model.save_pretrained(tmp_path / "saved")
    again = load_model(tmp_path / "saved", HEADS[head])  # type: ignore[arg-type]
    assert read_json(tmp_path / "saved" / "config.json")["head_pooling"] == "mean"
    assert torch.equal(logits(again, head), logits(model, head))
    other = load_model(tmp_path / "saved", HEADS[head], head_pooling="cls")  # type: ignore[arg-type]
    assert not torch.allclose(logits(other, head), logits(again, head), atol=1e-3)


def test_padding_has_no_part_in_the_mean() -> None:
    model = load_model("scratch:tiny", "sequence_classification", vocab_size=WORDS, head_pooling="mean").eval()
    with torch.no_grad():
        alone = model(input_ids=IDS[1:2, :4]).logits
    torch.testing.assert_close(logits(model)[1:2], alone, atol=1e-6, rtol=1e-5)


def test_a_model_that_was_asked_nothing_says_nothing_of_it(tmp_path: Path) -> None:
    with no_bar():
        load_model("scratch:tiny", "sequence_classification", vocab_size=WORDS).save_pretrained(tmp_path)
    assert "head_pooling" not in read_json(tmp_path / "config.json")


def test_other_heads_and_the_encoder_alone_are_as_ever(tmp_path: Path) -> None:
    model = load_model("scratch:tiny", "sequence_classification", vocab_size=WORDS, head_pooling="mean")
    with no_bar():
        model.save_pretrained(tmp_path)
    states = load_model(tmp_path).eval()(input_ids=IDS, attention_mask=REAL).last_hidden_state
    assert states.shape[:2] == IDS.shape
    assert load_model(tmp_path, "question_answering").eval()(input_ids=IDS).start_logits.shape == IDS.shape


@pytest.mark.parametrize("head", ["none", "question_answering", "masked_lm"])
def test_it_is_refused_where_no_text_is_read_as_a_whole(head: Any) -> None:
    with pytest.raises(ModelError, match="reads no text as a whole"):
        load_model("scratch:tiny", head, vocab_size=WORDS, head_pooling="mean")


def test_another_word_for_it_is_refused() -> None:
    with pytest.raises(ModelError, match="head_pooling is 'max'"):
        load_model("scratch:tiny", "sequence_classification", vocab_size=WORDS, head_pooling="max")
