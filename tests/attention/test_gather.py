"""The backend of plain operators against the float64 oracle, and in a graph that takes any length."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings

from sparsebert import attend, patterns
from sparsebert.attention.gather import lists_of
from sparsebert.errors import AttentionError
from sparsebert.patterns import Anchor, Pattern
from tests.attention.cases import Case, answers, attention_cases, rounding


@settings(max_examples=300)
@given(attention_cases())
def test_gather_equals_the_oracle_forward_and_backward(case: Case) -> None:
    oracle = answers(case, "reference", torch.float64)
    for expected, found in zip(oracle, answers(case, "gather", torch.float32), strict=True):
        assert found.isfinite().all()
        assert (expected - found).abs().max() <= rounding(expected, torch.float32, case.length + case.width)


@pytest.mark.parametrize(
    "pattern",
    [
        patterns.big_bird(64, 4),
        patterns.star(64),
        patterns.window_border(64, radius=3),
        patterns.random(64, sparsity=0.2),
    ],
    ids=["big bird", "star", "window and border", "thick"],
)
def test_lists_hold_each_entry_once(pattern: Pattern) -> None:
    keys, dense_rows, keep, slot = lists_of(pattern)
    found = np.zeros((pattern.heads, 64, 65), int)
    for head in range(pattern.heads):
        for row in range(64):
            np.add.at(found[head, row], keys[head, row], 1)
    found[:, dense_rows, :64] += keep
    assert np.array_equal(found[:, :, :64], pattern.keep().numpy())
    assert np.array_equal(np.flatnonzero(slot >= 0), dense_rows)


def test_the_border_is_dense_and_lists_are_as_wide_as_the_rest() -> None:
    keys, dense_rows, *_ = lists_of(patterns.window_border(256, radius=3))
    assert dense_rows.tolist() == [0, 255]
    assert keys.shape == (1, 256, 7 + 2)


def test_a_thick_pattern_has_no_lists() -> None:
    keys, dense_rows, *_ = lists_of(patterns.random(64, sparsity=0.1))
    assert keys.shape[2] == 0
    assert len(dense_rows) == 64


@pytest.mark.parametrize("anchor", ["position", "token"])
def test_a_graph_of_it_takes_any_length_and_padding(anchor: Anchor) -> None:
    pattern = patterns.big_bird(64, 2).anchored(anchor)

    class Attention(torch.nn.Module):
        def forward(self, states: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
            return attend(states, states, states, pattern=pattern, lengths=lengths, backend="gather")

    shapes = {"states": {0: torch.export.Dim.DYNAMIC, 2: torch.export.Dim("length", min=2, max=64)}}
    given = (torch.randn(3, 2, 40, 8), torch.tensor([40, 7, 1]))
    graph = torch.export.export(
        Attention(), given, dynamic_shapes={**shapes, "lengths": {0: torch.export.Dim.DYNAMIC}}
    ).module()
    for n, lengths in ((64, [64, 9]), (3, [2, 0]), (50, [50, 50, 1, 49])):
        states, real = torch.randn(len(lengths), 2, n, 8), torch.tensor(lengths)
        expected = attend(states, states, states, pattern=pattern, lengths=real, backend="reference")
        torch.testing.assert_close(graph(states, real), expected)


def test_a_gate_is_refused_by_name() -> None:
    tensor = torch.randn(1, 1, 3, 4)
    with pytest.raises(AttentionError, match="takes no gate"):
        attend(tensor, tensor, tensor, gate=torch.ones(1, 3, 3), backend="gather")
