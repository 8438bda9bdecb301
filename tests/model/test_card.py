"""A model card says how sparse a model is; figures stay only as long as they are of this pattern and these weights."""

from pathlib import Path
from typing import Any

import pytest
import torch
from sentence_transformers import SentenceTransformer

from sparsebert import patterns, sparsify, unsparsify
from sparsebert.model.card import CARD, Measured, attention_part, described_again, opening, with_part
from tests.model.sentence_cases import tiny_sentence_folder

STAR = patterns.star(16)
WRITTEN = "---\ntags: [a]\n# a comment\n---\n# Title\n\nWords.\n\n## Usage\n\nMore words.\n"


@pytest.fixture
def model(tmp_path: Path) -> Any:
    return sparsify(SentenceTransformer(str(tiny_sentence_folder(tmp_path / "dense")), device="cpu"), STAR)


def card_of(model: Any, folder: Path) -> str:
    model.save_pretrained(str(folder))
    return (folder / CARD).read_text(encoding="utf-8")


def test_a_card_of_sentence_transformers_says_what_attention_is_and_how_to_open_it(model: Any, tmp_path: Path) -> None:
    card = card_of(model, tmp_path / "sparse")
    assert f"- Sparsity of attention: {100 * STAR.sparsity:.2f} % at 16 tokens; one pattern for all layers" in card
    assert f"- Keys a query: {STAR.keys_per_query:.1f} of 16" in card
    assert "- Fidelity: not measured yet; `sparsebert compare` measures it" in card
    assert card.index("import sparsebert\nfrom sentence_transformers import SentenceTransformer") < card.index(
        "## Usage"
    )
    assert card.count("## Sparse attention") == 1
    assert "## Model Details" in card  # the library's own words stay


def test_figures_stay_while_they_are_true(model: Any, tmp_path: Path) -> None:
    model.save_pretrained(str(tmp_path / "sparse"))
    encoder, card = model[0].auto_model, tmp_path / "sparse" / CARD
    part = attention_part(encoder, opening(card.parent)[1], Measured("cosine 0.99", "twice as fast"))
    card.write_text(with_part(card.read_text(), part))
    again = SentenceTransformer(str(tmp_path / "sparse"), device="cpu")
    told = card_of(again, tmp_path / "again")
    assert "- Fidelity: cosine 0.99\n- Speed: twice as fast\n" in told
    sparsify(again, patterns.window(16, radius=2))
    told = card_of(again, tmp_path / "other")
    assert "cosine 0.99" not in told
    assert told.count("## Sparse attention") == 1
    assert "cosine 0.99" in card_of(sparsify(again, STAR), tmp_path / "back")
    with torch.no_grad():
        next(again[0].auto_model.parameters()).add_(0.01)
    assert "cosine 0.99" not in card_of(again, tmp_path / "trained")
    assert "sparsebert" not in card_of(unsparsify(again), tmp_path / "dense-again")


def test_a_part_stands_before_the_first_section_and_is_replaced_whole(model: Any) -> None:
    encoder = model[0].auto_model
    part = attention_part(encoder, "open it")
    card = with_part(WRITTEN, part)
    assert card.startswith("---\ntags: [a]\n# a comment\n---\n# Title\n\nWords.\n\n<!-- sparsebert: pattern ")
    assert card.endswith("<!-- end of sparsebert -->\n\n## Usage\n\nMore words.\n")
    assert with_part(card, part) == card
    assert with_part(card, "") == WRITTEN
    assert described_again(WRITTEN, encoder, "open it") == card
    assert with_part("", part) == part
