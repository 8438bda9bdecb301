"""A gate as a bias: the kernel learns it as the definition does, and leaves to others what is no bias."""

import dataclasses

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsebert import attend, patterns
from sparsebert.attention import AttentionArguments, GateValues, Relaxation, checked_inputs, choose
from sparsebert.attention.sparse_library import is_built
from sparsebert.errors import AttentionError
from tests.attention.cases import Case, attention_cases, rounding
from tests.attention.test_gated import answers

pytestmark = pytest.mark.skipif(not is_built(), reason="the C++ kernel is not built")


def everywhere(case: Case) -> Case:
    """The same case with a pattern that keeps everything, or none."""
    if case.pattern is None:
        return case
    return dataclasses.replace(case, pattern=patterns.full(case.pattern.length).anchored(case.pattern.anchor))


@settings(max_examples=60)
@given(attention_cases(longest=40), st.sampled_from(["log", "additive"]), st.booleans())
def test_the_kernel_learns_a_gate_as_the_definition_does(case: Case, relaxation: Relaxation, one: bool) -> None:
    case = everywhere(case)
    positions = case.length if case.pattern is None else case.pattern.length
    generator = torch.Generator().manual_seed(case.seed)
    gate = torch.rand(1 if one else case.heads, positions, positions, generator=generator, dtype=torch.float64)
    gate = gate * 0.9 + 0.05
    oracle = answers(case, gate, relaxation, "reference", torch.float64)
    for expected, found in zip(oracle, answers(case, gate, relaxation, "sparse", torch.float64), strict=True):
        assert (expected - found).abs().max() <= 1e-9 * max(1.0, float(expected.abs().max()))
    for expected, found in zip(oracle, answers(case, gate, relaxation, "sparse", torch.float32), strict=True):
        assert (expected - found).abs().max() <= 8 * rounding(expected, torch.float32, case.length * case.batch)


def test_an_entry_that_is_nearly_off_learns_as_much_as_by_the_other_way() -> None:
    torch.manual_seed(3)
    query, key, value = torch.randn(3, 2, 1, 6, 8).unbind()
    found = []
    for backend in ("sparse", "gated"):
        gate = torch.full((1, 6, 6), 0.7)
        gate[0, 1, 2] = 1e-29
        gate.requires_grad_()
        attend(query, key, value, gate=gate, backend=backend).square().sum().backward()
        assert gate.grad is not None
        found.append(gate.grad)
    assert found[0][0, 1, 2] != 0
    torch.testing.assert_close(*found, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("gate", "relaxation", "pattern", "backend"),
    [
        (torch.full((2, 8, 8), 0.5), "log", None, "sparse"),
        (torch.full((2, 8, 8), 0.5), "additive", None, "sparse"),
        (torch.zeros(2, 8, 8), "additive", None, "sparse"),
        (torch.zeros(2, 8, 8), "log", None, "gated"),
        (torch.full((2, 8, 8), torch.nan), "log", None, "gated"),
        (torch.full((2, 8, 8), 0.5), "multiplicative", None, "gated"),
        (torch.full((2, 8, 8), 0.5), "log", patterns.star(8), "gated"),
        (torch.full((2, 8, 8), 0.5, dtype=torch.float64), "log", None, "gated"),
    ],
)
def test_auto_takes_the_kernel_where_the_gate_is_a_bias(
    gate: torch.Tensor, relaxation: Relaxation, pattern: patterns.Pattern | None, backend: str
) -> None:
    query = torch.randn(1, 2, 8, 4)
    under = AttentionArguments(pattern, gate=GateValues(gate, relaxation, 10.0))
    assert choose(checked_inputs(query, query, query, under)).backend == backend
    if backend == "gated":
        with pytest.raises(AttentionError, match="use backend='gated'"):
            attend(query, query, query, pattern=pattern, gate=gate, relaxation=relaxation, backend="sparse")
