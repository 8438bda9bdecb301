"""Heads give what transformers' own forward gives, without the work that no head reads."""

import numpy as np
import pytest
import torch

from sparsebert import patterns
from sparsebert.model import load_model
from sparsebert.tasks.encoding.sequences import Batch, Sequences
from sparsebert.tasks.heads import item_losses, run_head
from tests.training.families import CONFIGS, WORDS, small_model


def _batch(rows: int = 4) -> Batch:
    generator = np.random.default_rng(0)
    items = [(generator.integers(5, 100, size=5 + 3 * row).astype(np.int32), 4) for row in range(rows)]
    return Sequences.of(items, 0).batch(np.arange(rows))


@pytest.mark.parametrize(
    "pattern", [None, patterns.star(16), patterns.from_offsets(length=16, offsets=[[-1, 1]], border=True)]
)
def test_leaving_out_tokens_that_no_head_reads_changes_neither_scores_nor_gradients(
    pattern: patterns.Pattern | None,
) -> None:
    model = load_model("scratch:tiny", "sequence_classification", vocab_size=100, pattern=pattern).eval()
    batch = _batch()
    whole = model(batch.input_ids, attention_mask=batch.padding(), token_type_ids=batch.token_type_ids).logits
    whole.square().sum().backward()
    expected = {name: parameter.grad.clone() for name, parameter in model.named_parameters()}
    model.zero_grad()
    found = run_head(model, "classification", batch)
    found.square().sum().backward()
    torch.testing.assert_close(found, whole, atol=1e-6, rtol=1e-5)
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parameter.grad, expected[name], atol=1e-6, rtol=1e-4)


def test_the_model_is_left_as_it_was() -> None:
    model = load_model("scratch:tiny", "sequence_classification", vocab_size=100).eval()
    batch = _batch()
    run_head(model, "classification", batch)
    states = model.base_model(batch.input_ids, attention_mask=batch.padding()).last_hidden_state
    assert states.shape[1] == batch.input_ids.shape[1]


@pytest.mark.parametrize("family", CONFIGS)
def test_every_family_scores_rows_as_its_own_forward_does(family: str) -> None:
    model, batch = small_model(family, "SequenceClassification").eval(), _batch(3)
    batch = Batch(batch.input_ids % WORDS, torch.zeros_like(batch.input_ids), batch.lengths)
    own = model(input_ids=batch.input_ids, attention_mask=batch.padding()).logits
    torch.testing.assert_close(run_head(model, "classification", batch), own, atol=1e-5, rtol=1e-5)


def test_a_head_that_reads_the_mean_is_given_every_token() -> None:
    model = load_model("scratch:tiny", "sequence_classification", vocab_size=100, head_pooling="mean").eval()
    batch = _batch()
    whole = model(batch.input_ids, attention_mask=batch.padding(), token_type_ids=batch.token_type_ids).logits
    assert torch.equal(run_head(model, "classification", batch), whole)


def test_four_choices_are_scored_together() -> None:
    model = load_model("scratch:tiny", "multiple_choice", vocab_size=100).eval()
    assert run_head(model, "choice", _batch(8), each=4).shape == (2, 4)


def test_losses_are_the_textbook_ones() -> None:
    batch = _batch(2)
    scores = torch.tensor([[2.0, 0.0], [0.0, 1.0]])
    expected = torch.nn.functional.cross_entropy(scores, torch.tensor([0, 0]), reduction="none")
    assert torch.equal(item_losses("classification", scores, torch.tensor([0, 0]), batch), expected)
    assert item_losses("regression", torch.tensor([1.0, 4.0]), torch.tensor([2.0, 4.0]), batch).tolist() == [1.0, 0.0]
