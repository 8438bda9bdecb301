"""minilm under a pattern against transformers' own BERT given the same decision as an additive tensor."""

from typing import Any

import pytest
import torch
from transformers import BertModel

from sparsebert import Pattern, load_model, patterns
from sparsebert.model.sources import model_folder

HEADS = 12


@pytest.fixture(scope="module")
def own_bert() -> Any:
    return BertModel.from_pretrained(model_folder("minilm"), attn_implementation="eager").eval()


@pytest.fixture(scope="module")
def sparse_bert() -> Any:
    return load_model("minilm").eval()


def tokens_and_padding() -> tuple[torch.Tensor, torch.Tensor]:
    tokens = torch.randint(1000, 20_000, (3, 24), generator=torch.Generator().manual_seed(0))
    real = torch.ones_like(tokens)
    real[1, 15:] = 0
    real[2, 4:] = 0
    return tokens, real


def additive(pattern: Pattern, real: torch.Tensor) -> torch.Tensor:
    n = real.shape[1]
    allowed = pattern.keep()[None, :, :n, :n] & real.bool()[:, None, None, :]
    allowed = allowed.expand(len(real), HEADS, n, n)
    return torch.zeros(allowed.shape).masked_fill(~allowed, torch.finfo(torch.float32).min)


def states_and_gradient(model: Any, tokens: torch.Tensor, padding: torch.Tensor, real: torch.Tensor) -> tuple[Any, Any]:
    """Hidden states of real tokens, and the gradient that their sum of squares sends to the first query projection."""
    weight = model.encoder.layer[0].attention.self.query.weight
    states = model(input_ids=tokens, attention_mask=padding).last_hidden_state[real.bool()]
    (gradient,) = torch.autograd.grad((states**2 * torch.linspace(0, 1, states.shape[-1])).sum(), weight)
    return states.detach(), gradient


def test_a_full_pattern_gives_berts_own_outputs_at_real_tokens(own_bert: Any, sparse_bert: Any) -> None:
    tokens, real = tokens_and_padding()
    expected, expected_gradient = states_and_gradient(own_bert, tokens, real, real)
    for pattern in (None, patterns.full(24), patterns.full(64, heads=HEADS)):
        sparse_bert.set_pattern(pattern)
        found, gradient = states_and_gradient(sparse_bert, tokens, real, real)
        assert (expected - found).abs().max() < 1e-5
        assert (expected_gradient - gradient).abs().max() < 1e-5 * float(expected_gradient.abs().max())


@pytest.mark.parametrize(
    "pattern",
    [
        patterns.star(24),
        patterns.big_bird(40, heads=HEADS, seed=2),
        patterns.random(24, heads=HEADS, sparsity=0.6, seed=1) | patterns.window(24, radius=0),
        patterns.full(24).without_diagonal(),
    ],
    ids=["star", "big_bird-longer", "random-per-head", "no-diagonal"],
)
def test_any_pattern_equals_eager_attention_given_the_same_decision(
    own_bert: Any, sparse_bert: Any, pattern: Pattern
) -> None:
    tokens, real = tokens_and_padding()
    expected, expected_gradient = states_and_gradient(own_bert, tokens, additive(pattern, real), real)
    found, gradient = states_and_gradient(sparse_bert.set_pattern(pattern), tokens, real, real)
    assert (expected - found).abs().max() < 1e-5
    assert (expected_gradient - gradient).abs().max() < 1e-5 * float(expected_gradient.abs().max())


def test_heads_that_keep_different_entries_attend_differently(sparse_bert: Any) -> None:
    one_head_local = patterns.from_offsets(24, [[-1, 0, 1]] + [list(range(-23, 24))] * (HEADS - 1))
    outputs = []
    for pattern in (patterns.full(24), one_head_local):
        sparse_bert.set_pattern(pattern)
        attention = sparse_bert.encoder.layer[0].attention.self
        outputs.append(attention(torch.randn(1, 24, 384, generator=torch.Generator().manual_seed(1)))[0])
    changed = (outputs[0] - outputs[1]).abs().view(24, HEADS, 32).amax((0, 2)) > 1e-4
    assert changed.tolist() == [True] + [False] * (HEADS - 1)


def test_a_sentence_gets_the_same_answer_alone_or_in_a_batch(sparse_bert: Any) -> None:
    tokens, real = tokens_and_padding()
    for pattern in (patterns.star(24), patterns.from_offsets(24, [[-2, 2]], border=True, anchor="token")):
        sparse_bert.set_pattern(pattern)
        together = sparse_bert(input_ids=tokens, attention_mask=real).last_hidden_state
        for row, length in enumerate(real.sum(1).tolist()):
            alone = sparse_bert(input_ids=tokens[row : row + 1, :length]).last_hidden_state
            assert (alone[0] - together[row, :length]).abs().max() < 1e-5


def test_attention_maps_can_be_asked_for(sparse_bert: Any) -> None:
    tokens, real = tokens_and_padding()
    sparse_bert.set_pattern(patterns.star(24))
    maps = sparse_bert(input_ids=tokens, attention_mask=real, output_attentions=True).attentions
    assert len(maps) == 6
    assert maps[0].shape == (3, HEADS, 24, 24)
    assert (maps[0][:, :, ~patterns.star(24).keep()[0]] == 0).all()
    torch.testing.assert_close(maps[0][0].sum(-1), torch.ones(HEADS, 24))
