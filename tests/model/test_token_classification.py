"""A sparse model that labels tokens is saved, loaded, and run by transformers' own pipeline."""

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForTokenClassification, AutoTokenizer, pipeline

from sparsebert import load_model, sparsify
from sparsebert.model.saving import save_model
from sparsebert.text import train_tokenizer
from tests.model.sentence_cases import TEXTS
from tests.model.test_families import FAMILIES, SHARED, dense

LABELS = ["O", "B-PLACE", "I-PLACE"]
TEXT = "rivers run to the sea and carry sand"


def labelled(family: str, folder: Path) -> Any:
    """A sparse model, saved with its tokenizer."""
    tokenizer = train_tokenizer(lambda: TEXTS, 100)
    names = {"id2label": dict(enumerate(LABELS)), "label2id": {name: place for place, name in enumerate(LABELS)}}
    model = dense(family, "ForTokenClassification", vocab_size=tokenizer.get_vocab_size(), **names)
    save_model(sparsify(model, SHARED), folder, tokenizer)
    return model


@torch.no_grad()
def labels_of(model: Any, ids: torch.Tensor) -> torch.Tensor:
    found: torch.Tensor = model(input_ids=ids).logits
    return found


@pytest.mark.parametrize("family", ["bert", "roberta", "distilbert", "modernbert"])
def test_a_pipeline_labels_tokens_as_the_sparse_model_does(family: str, tmp_path: Path) -> None:
    model = labelled(family, tmp_path / "model")
    ids = AutoTokenizer.from_pretrained(tmp_path / "model")(TEXT, return_tensors="pt")["input_ids"]
    expected = labels_of(model, ids)
    for loaded in (
        AutoModelForTokenClassification.from_pretrained(tmp_path / "model").eval(),
        load_model(tmp_path / "model", "token_classification").eval(),
    ):
        assert type(loaded).__name__ == f"Sparse{FAMILIES[family][0]}ForTokenClassification"
        assert loaded.pattern == SHARED
        assert torch.equal(labels_of(loaded, ids), expected)
    run = pipeline("token-classification", model=str(tmp_path / "model"), device="cpu", ignore_labels=[])
    assert run.model.pattern == SHARED
    found = run(TEXT)
    assert [TEXT[one["start"] : one["end"]] for one in found] == TEXT.split()
    shares, places = expected[0, 1:-1].softmax(-1).max(-1)  # without what stands before and after the text
    assert [one["entity"] for one in found] == [LABELS[place] for place in places]
    assert [float(one["score"]) for one in found] == pytest.approx(shares.tolist(), abs=1e-6)
