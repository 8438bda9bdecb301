"""The dense backend against the float64 oracle."""

import pytest
import torch
from hypothesis import given, settings

from sparsebert import attend, patterns
from sparsebert.errors import AttentionError
from tests.attention.cases import Case, answers, attention_cases, rounding


@settings(max_examples=300)
@given(attention_cases())
def test_sdpa_equals_the_oracle_forward_and_backward(case: Case) -> None:
    oracle = answers(case, "reference", torch.float64)
    for expected, found in zip(oracle, answers(case, "sdpa", torch.float32), strict=True):
        assert found.isfinite().all()
        assert (expected - found).abs().max() <= rounding(expected, torch.float32, case.length + case.width)


def test_a_query_with_nothing_to_attend_to_gives_zeros_and_no_gradient() -> None:
    query, key, value = (torch.randn(1, 1, 3, 4, requires_grad=True) for _ in range(3))
    nothing = patterns.random(3, sparsity=1.0)
    output = attend(query, key, value, pattern=nothing, backend="sdpa")
    output.sum().backward()
    assert output.abs().sum() == 0
    assert query.grad is not None
    assert query.grad.abs().sum() == 0


def test_dropout_keeps_the_mean() -> None:
    torch.manual_seed(0)
    query, key = torch.randn(2, 1, 64, 8, 16)
    value = torch.ones(1, 64, 8, 16)
    output = attend(query[None, 0], key[None, 0], value, pattern=patterns.star(8), dropout=0.3, backend="sdpa")
    assert abs(float(output.mean()) - 1.0) < 0.05


def test_a_gate_is_refused_by_name() -> None:
    tensor = torch.randn(1, 1, 3, 4)
    with pytest.raises(AttentionError, match="takes no gate"):
        attend(tensor, tensor, tensor, gate=torch.ones(1, 3, 3), backend="sdpa")
