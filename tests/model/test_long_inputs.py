"""A pattern that has a rule follows the input, row by row."""

from typing import Any

import pytest
import torch

from sparsebert import patterns, sparsify
from sparsebert.model.lengths import longest_input
from sparsebert.model.long_inputs import reaching
from tests.model.cases import tiny, tokens

RULES = {
    "star": patterns.star(8),
    "random": patterns.random(8, heads=2, sparsity=0.5, seed=0),
    "border": patterns.from_offsets(length=8, offsets=[[-1, 1], [2]], border=True),
    "token": patterns.from_offsets(length=8, offsets=[[-1, 1], [2]], border=True).anchored("token"),
}


def states(model: Any, rows: torch.Tensor, lengths: list[int], **more: Any) -> Any:
    real = (torch.arange(rows.shape[1]) < torch.tensor(lengths)[:, None]).long()
    return model.base_model(input_ids=rows, attention_mask=real, **more)


@pytest.mark.parametrize("pattern", RULES.values(), ids=RULES)
def test_a_row_beyond_the_pattern_runs_under_it_rebuilt_at_the_next_doubling(pattern: patterns.Pattern) -> None:
    model, row = sparsify(tiny().eval(), pattern), tokens(1, 30)
    followed = model(input_ids=row).logits
    assert torch.equal(followed, sparsify(model, pattern.at(32))(input_ids=row).logits)
    assert model.pattern == pattern.at(32)


@pytest.mark.parametrize("pattern", RULES.values(), ids=RULES)
def test_a_row_gets_the_same_states_alone_and_beside_longer_ones(pattern: patterns.Pattern) -> None:
    model, rows, lengths = sparsify(tiny().eval(), pattern), tokens(4, 30), [6, 30, 8, 12]
    together = states(model, rows, lengths)[0]
    for number, length in enumerate(lengths):
        alone = model.base_model(input_ids=rows[number : number + 1, :length])[0][0]
        torch.testing.assert_close(together[number, :length], alone)


def test_the_gradient_of_rows_of_many_lengths_is_that_of_the_rows_alone() -> None:
    model, rows, lengths = sparsify(tiny().eval(), RULES["random"]), tokens(3, 30), [6, 30, 12]
    names = [name for name, _ in model.base_model.encoder.named_parameters()]
    wanted = {name: torch.zeros(()) for name in names}
    for number, length in enumerate(lengths):
        model.zero_grad()
        model.base_model(input_ids=rows[number : number + 1, :length])[0].square().sum().backward()
        wanted = {name: wanted[name] + model.base_model.encoder.get_parameter(name).grad for name in names}
    model.zero_grad()
    together = states(model, rows, lengths)[0]
    sum(together[number, :length].square().sum() for number, length in enumerate(lengths)).backward()
    for name in names:
        torch.testing.assert_close(
            model.base_model.encoder.get_parameter(name).grad, wanted[name], rtol=1e-4, atol=1e-4
        )


def test_weights_of_rows_of_many_lengths_are_those_of_the_rows_alone() -> None:
    model, rows, lengths = sparsify(tiny().eval(), RULES["star"]), tokens(2, 20), [5, 20]
    together = states(model, rows, lengths, output_attentions=True)["attentions"]
    for number, length in enumerate(lengths):
        alone = model.base_model(input_ids=rows[number : number + 1, :length], output_attentions=True)["attentions"]
        for ours, theirs in zip(together, alone, strict=True):
            torch.testing.assert_close(ours[number, :, :length, :length], theirs[0])
            assert not ours[number, :, length:].any()


def test_rebuilt_patterns_are_few_and_kept() -> None:
    pattern = patterns.star(8)
    assert {reaching(pattern, length).length for length in range(1, 65)} == {8, 16, 32, 64}
    assert reaching(pattern, 30) is reaching(pattern, 20)
    assert reaching(pattern, 8) is pattern


def test_what_a_model_takes_ends_with_a_pattern_of_explicit_entries() -> None:
    star = patterns.star(12)
    assert longest_input(tiny()) == 512
    assert longest_input(sparsify(tiny(), star)) == 512
    assert longest_input(sparsify(tiny(), patterns.from_keep(star.keep()))) == 12


def test_a_graph_ends_where_its_pattern_ends() -> None:
    model = sparsify(tiny().eval(), patterns.star(8))
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    with pytest.raises(Exception, match=r"pattern.at\(12\)"):
        compiled(input_ids=tokens(1, 12))
