"""FlexAttention as far as a CPU can tell: the BlockMask is the pattern, the forward is the oracle's."""

import pytest
import torch
from hypothesis import given, settings

from sparsebert import attend, patterns
from sparsebert.attention.flex import block_mask
from sparsebert.attention.inputs import Inputs
from sparsebert.errors import AttentionError
from tests.attention.cases import Case, attention_cases, rounding


@settings(max_examples=25)
@given(attention_cases(longest=40, widths=(16,)))
def test_flex_forward_equals_the_oracle(case: Case) -> None:
    *tensors, _ = case.tensors(torch.float32)
    settings = {"pattern": case.pattern, "lengths": case.length_tensor()}
    expected = attend(*(tensor.double() for tensor in tensors), backend="reference", **settings)
    found = attend(*tensors, backend="flex", **settings)
    assert found.isfinite().all()
    assert (expected - found).abs().max() <= rounding(expected, torch.float32, case.length)


def test_the_block_mask_is_the_pattern() -> None:
    pattern = patterns.big_bird(300, heads=2, seed=1)
    query = torch.zeros(1, 2, 300, 8)
    blocks = block_mask(Inputs(query, query, query, pattern, None, 0.0, 1.0, None, None))
    kept = torch.nn.functional.pad(pattern.keep(), (0, 84, 0, 84)).view(2, 3, 128, 3, 128).any(2).any(-1)
    assert torch.equal(blocks.to_dense()[0].bool(), kept)


def test_flex_refuses_a_gradient_on_the_cpu_and_dropout_anywhere() -> None:
    query = torch.zeros(1, 1, 4, 8, requires_grad=True)
    with pytest.raises(AttentionError, match="CUDA only"):
        attend(query, query, query, pattern=patterns.window(4), backend="flex")
    with pytest.raises(AttentionError, match="no dropout"):
        attend(query.detach(), query, query, pattern=patterns.window(4), dropout=0.1, backend="flex")
