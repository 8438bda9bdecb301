"""The soft forms: Eq. (4), Eqs. (5)-(6) and the log form, with gradients to the gate."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsebert import attend, patterns
from sparsebert.attention import Relaxation
from tests.attention.cases import Case, attention_cases, rounding

RELAXATIONS: list[Relaxation] = ["multiplicative", "additive", "log"]


def answers(
    case: Case, gate: torch.Tensor, relaxation: Relaxation, backend: str, dtype: torch.dtype
) -> list[torch.Tensor]:
    *leaves, grad = case.tensors(dtype)
    leaves = [leaf.detach().requires_grad_() for leaf in (*leaves, gate.to(dtype))]
    output = attend(
        *leaves[:3],
        gate=leaves[3],
        relaxation=relaxation,
        c=10.0,
        pattern=case.pattern,
        lengths=case.length_tensor(),
        backend=backend,
    )
    gradients = torch.autograd.grad(output, leaves, grad, materialize_grads=True)
    return [answer.detach().double() for answer in (output, *gradients)]


@settings(max_examples=60)
@given(attention_cases(longest=40), st.sampled_from(RELAXATIONS), st.sampled_from(["soft", "hard"]), st.booleans())
def test_gated_equals_the_oracle_forward_and_backward(case: Case, relaxation: Relaxation, kind: str, one: bool) -> None:
    positions = case.length if case.pattern is None else case.pattern.length
    generator = torch.Generator().manual_seed(case.seed)
    gate = torch.rand(1 if one else case.heads, positions, positions, generator=generator, dtype=torch.float64)
    gate = (gate > 0.4).double() if kind == "hard" else gate * 0.9 + 0.05
    oracle = answers(case, gate, relaxation, "reference", torch.float64)
    for expected, found in zip(oracle, answers(case, gate, relaxation, "gated", torch.float64), strict=True):
        assert found.isfinite().all()
        assert (expected - found).abs().max() <= 1e-9 * max(1.0, float(expected.abs().max()))
    for expected, found in zip(oracle, answers(case, gate, relaxation, "gated", torch.float32), strict=True):
        assert (expected - found).abs().max() <= 8 * rounding(expected, torch.float32, case.length * case.batch)


@pytest.mark.parametrize("autocast", ["nowhere", "forward", "forward and backward"])
@pytest.mark.parametrize("relaxation", RELAXATIONS)
def test_half_precision_queries_keep_the_arithmetic_of_the_gate(relaxation: Relaxation, autocast: str) -> None:
    torch.manual_seed(2)
    half = [torch.randn(2, 2, 9, 4).bfloat16() for _ in range(4)]
    gate = torch.rand(2, 9, 9) * 0.9 + 0.05
    found = [leaf.clone().requires_grad_() for leaf in (*half[:3], gate)]
    exact = [leaf.double().requires_grad_() for leaf in (*half[:3], gate)]
    with torch.autocast("cpu", torch.bfloat16, enabled="forward" in autocast):
        output = attend(*found[:3], gate=found[3], relaxation=relaxation, backend="gated")
    expected = attend(*exact[:3], gate=exact[3], relaxation=relaxation, backend="reference")
    with torch.autocast("cpu", torch.bfloat16, enabled="backward" in autocast):
        output.backward(half[3])
    expected.backward(half[3].double())
    assert output.dtype == torch.bfloat16
    # Nothing but the last rounding of the output is half: the gate's gradient is as good as in float32.
    torch.testing.assert_close(output.double(), expected, rtol=2**-8, atol=1e-6)
    torch.testing.assert_close(found[3].grad.double(), exact[3].grad, rtol=1e-4, atol=1e-5)  # type: ignore[union-attr]
    for rounded, whole in zip(found[:3], exact[:3], strict=True):
        torch.testing.assert_close(rounded.grad.double(), whole.grad, rtol=2**-8, atol=1e-5)  # type: ignore[union-attr]


@pytest.mark.parametrize("relaxation", RELAXATIONS)
@pytest.mark.parametrize("backend", ["reference", "gated"])
def test_gradients_match_finite_differences(relaxation: Relaxation, backend: str) -> None:
    torch.manual_seed(1)
    tensors = [torch.randn(2, 2, 5, 3, dtype=torch.float64, requires_grad=True) for _ in range(3)]
    gate = (torch.rand(2, 6, 6, dtype=torch.float64) * 0.8 + 0.1).requires_grad_()

    def run(*leaves: torch.Tensor) -> torch.Tensor:
        *qkv, soft = leaves
        return attend(
            *qkv,
            gate=soft,
            relaxation=relaxation,
            c=3.0,
            pattern=patterns.star(6),
            lengths=torch.tensor([5, 3]),
            backend=backend,
        )

    assert torch.autograd.gradcheck(run, (*tensors, gate))


def test_an_open_gate_changes_nothing_in_any_form() -> None:
    torch.manual_seed(2)
    query, key, value = torch.randn(3, 2, 4, 7, 8).unbind()
    plain = attend(query, key, value, backend="reference")
    for relaxation in RELAXATIONS:
        gated = attend(query, key, value, gate=torch.ones(4, 7, 7), relaxation=relaxation)
        torch.testing.assert_close(gated, plain)


def test_an_entry_that_is_off_learns_what_it_would_bring() -> None:
    torch.manual_seed(3)
    query, key, value = torch.randn(3, 1, 1, 4, 8).unbind()
    gate = torch.ones(1, 4, 4)
    gate[0, 1, 2] = 0.0
    gate.requires_grad_()
    attend(query, key, value, gate=gate)[0, 0, 1].sum().backward()
    assert gate.grad is not None
    assert gate.grad[0, 1, 2] != 0


@pytest.mark.parametrize("relaxation", RELAXATIONS)
def test_a_closed_gate_gives_zeros_not_nan(relaxation: Relaxation) -> None:
    query, key, value = torch.randn(3, 1, 2, 4, 8).mul(50).unbind()
    gate = torch.zeros(1, 4, 4, requires_grad=True)
    output = attend(query, key, value, gate=gate, relaxation=relaxation, lengths=torch.tensor([0]))
    output.sum().backward()
    assert output.abs().sum() == 0
    assert gate.grad is not None
    assert gate.grad.isfinite().all()


def test_kept_scores_far_below_the_others_keep_their_weights() -> None:
    key = torch.zeros(1, 1, 3, 1)
    key[0, 0, :, 0] = torch.tensor([400.0, -300.0, -301.0])
    value = torch.tensor([5.0, 1.0, 2.0]).view(1, 1, 3, 1)
    gate = torch.tensor([[[0.0, 1.0, 1.0]] * 3], requires_grad=True)
    output = attend(torch.ones(1, 1, 3, 1), key, value, gate=gate, scale=1.0)
    expected = (1.0 + 2.0 * torch.exp(torch.tensor(-1.0))) / (1.0 + torch.exp(torch.tensor(-1.0)))
    torch.testing.assert_close(output, expected.expand(1, 1, 3, 1))
    output.sum().backward()
    assert gate.grad is not None
    assert gate.grad.isfinite().all()
