"""A packed row gives every example what it gets alone, whatever the backend, forward and backward."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from sparsebert import attend, patterns
from sparsebert.attention.sparse_library import is_built
from sparsebert.errors import AttentionError
from tests.attention.cases import random_patterns, rounding

BACKENDS = ["sdpa", "reference", *(["sparse"] if is_built() else [])]


def row(tokens: int, heads: int, seed: int, dtype: torch.dtype = torch.float32) -> list[Tensor]:
    """Query, key, value and a gradient, laid out as BERT does it."""
    generator = torch.Generator().manual_seed(seed)
    shape = (1, tokens, heads, 8)
    return [torch.randn(shape, generator=generator, dtype=dtype).transpose(1, 2) for _ in range(4)]


@settings(max_examples=60)
@given(st.lists(st.integers(0, 40), max_size=5), st.integers(1, 3), st.data(), st.sampled_from(BACKENDS))
def test_every_example_gets_what_it_gets_alone(lengths: list[int], heads: int, data: st.DataObject, name: str) -> None:
    pattern = data.draw(st.none() | random_patterns(44, heads))
    *leaves, grad = row(sum(lengths), heads, 3)
    leaves = [leaf.requires_grad_() for leaf in leaves]
    output = attend(
        *leaves, pattern=pattern, lengths=torch.tensor(lengths, dtype=torch.int64), packed=True, backend=name
    )
    found = [output.detach(), *torch.autograd.grad(output, leaves, grad, materialize_grads=True)]
    for alone in zip(*(tensor.split(lengths, dim=2) for tensor in (*leaves, grad, *found)), strict=True):
        *own, own_grad = (tensor.detach().double() for tensor in alone[:4])
        own = [leaf.requires_grad_() for leaf in own]
        expected = attend(*own, pattern=pattern, backend="reference")
        oracle = [expected.detach(), *torch.autograd.grad(expected, own, own_grad, materialize_grads=True)]
        for right, answer in zip(oracle, alone[4:], strict=True):
            if right.numel():
                assert (right - answer).abs().max() <= rounding(right, torch.float32, sum(lengths))


@pytest.mark.skipif(not is_built(), reason="the C++ kernel was not built: no C++ compiler")
@pytest.mark.parametrize("threads", [1, 2])
def test_the_kernel_gives_a_packed_row_the_bits_of_the_padded_batch(threads: int) -> None:
    lengths, before = torch.tensor([300, 7, 130, 1]), torch.get_num_threads()
    pattern = patterns.random(320, 3, sparsity=0.9) | patterns.border(320)
    query, key, value, _ = row(int(lengths.sum()), 3, 5)
    padded = [
        torch.nn.utils.rnn.pad_sequence(list(tensor[0].transpose(0, 1).split(lengths.tolist())), batch_first=True)
        for tensor in (query, key, value)
    ]
    torch.set_num_threads(threads)
    try:
        packed = attend(query, key, value, pattern=pattern, lengths=lengths, packed=True, backend="sparse")
        apart = attend(
            *(tensor.transpose(1, 2) for tensor in padded), pattern=pattern, lengths=lengths, backend="sparse"
        )
    finally:
        torch.set_num_threads(before)
    for number, example in enumerate(packed.split(lengths.tolist(), dim=2)):
        assert torch.equal(example[0], apart[number, :, : lengths[number]])


@pytest.mark.parametrize(
    ("lengths", "rows"),
    [([3, 4], 1), ([12, -2], 1), ([5, 5], 2), (None, 1), ([[5, 5]], 1), ([5.0, 5.0], 1)],
)
def test_lengths_that_do_not_fill_the_row_are_refused(lengths: list[int] | None, rows: int) -> None:
    query = torch.zeros(rows, 2, 10, 8)
    given_lengths = None if lengths is None else torch.tensor(lengths)
    with pytest.raises(AttentionError, match="packed row"):
        attend(query, query, query, lengths=given_lengths, packed=True)


def test_an_example_longer_than_the_pattern_is_refused() -> None:
    query = torch.zeros(1, 2, 30, 8)
    with pytest.raises(AttentionError, match=r"pattern\.at\(20\)"):
        attend(query, query, query, pattern=patterns.star(16), lengths=torch.tensor([10, 20]), packed=True)
