"""The sparse path gives what the dense one gives, at the cost of what is kept."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sparsebert import gates, patterns
from sparsebert.attention import attend_checked, checked_inputs
from sparsebert.attention.sparse_library import is_built
from sparsebert.errors import GateError
from sparsebert.gates.learned_lines import LearnedLines
from sparsebert.gates.sampled_lines import explored, lines_pattern


@given(st.integers(3, 30), st.integers(0, 99), st.booleans())
def test_lines_are_those_of_from_offsets_and_every_entry_knows_its_distance(n: int, seed: int, border: bool) -> None:
    units = n - 2 if border else n
    keep = np.random.default_rng(seed).random((2, units)) < 0.4
    pattern, places = lines_pattern(n, LearnedLines(units), keep, border, "position")
    offsets = [[sign * d for d in np.flatnonzero(head).tolist() for sign in (-1, 1)] for head in keep]
    assert pattern == patterns.from_offsets(n, offsets, border=border)
    for head in range(2):
        entries = pattern.entries(head)
        rows, columns = entries // n, entries % n
        edge = (np.minimum(rows, columns) == 0) | (np.maximum(rows, columns) == n - 1)
        expected = np.where(edge & border, units, np.abs(rows - columns)) + head * (units + 1)
        assert np.array_equal(places[pattern.row_starts[head, 0] : pattern.row_starts[head, -1]], expected)


def test_hard_samples_give_the_same_output_and_gradient_on_both_paths() -> None:
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(2, 3, 16, 8, generator=generator, dtype=torch.float64) for _ in range(3))
    answers = []
    for path in ("dense", "sparse"):
        gate = gates.Structured(length=16, heads=3, path=path, sampling="hard", explore=0.0).double()
        gate.resample(0, 0)
        inputs = checked_inputs(q, k, v, gate.attention_arguments(None, 0))
        output = attend_checked(inputs, "auto" if path == "dense" else "reference")
        output.square().sum().backward()
        assert gate.alpha.grad is not None
        answers.append((output.detach(), gate.alpha.grad, gate.units().detach()))
    torch.testing.assert_close(answers[0][0], answers[1][0])
    on = answers[0][2] == 1
    torch.testing.assert_close(answers[0][1][on], answers[1][1][on], atol=1e-6, rtol=1e-6)
    assert (answers[1][1][~on] == 0).all()


def test_a_line_that_is_off_is_sometimes_drawn_back_in_and_then_has_a_gradient() -> None:
    gate = gates.Structured(length=16, heads=3, path="sparse", explore=0.3)
    with torch.no_grad():
        gate.alpha.fill_(-3.0)
    gate.resample(0, 0)
    q = torch.randn(2, 3, 16, 8, generator=torch.Generator().manual_seed(0))
    inputs = checked_inputs(q, q, q, gate.attention_arguments(None, 0))
    attend_checked(inputs, "reference").square().sum().backward()
    assert gate.alpha.grad is not None
    assert 0.1 < float((gate.alpha.grad != 0).float().mean()) < 0.7


def test_explored_lines_weigh_one_half_and_the_others_their_own_value() -> None:
    units = torch.tensor([[0.9, 0.2, 0.001, 0.4]])
    keep, values = explored(units, np.array([[0.9, 0.0, 0.0, 0.9]]), 0.1)
    assert keep.tolist() == [[True, True, True, False]]
    torch.testing.assert_close(values[keep], torch.tensor([0.9, 0.5, 0.5]))


def test_long_gates_take_the_sparse_path_by_themselves_and_hold_nothing_of_n_squared() -> None:
    gate = gates.Structured(length=1024, heads=2, initial_density=0.05)
    assert gate.is_sparse
    assert not gates.Structured(length=128, heads=2).is_sparse
    gate.resample(0, 0)
    sampled = gate.attention_arguments(None, 0).pattern
    assert sampled is not None
    assert 0.03 < sampled.density < 0.12
    assert max(buffer.numel() for buffer in gate.buffers()) <= 1024


def test_the_sparse_path_refuses_what_it_cannot_do() -> None:
    with pytest.raises(GateError, match="bias per entry"):
        gates.Structured(length=16, heads=1, path="sparse", relaxation="multiplicative")


@pytest.mark.parametrize("heads", [1, 2])
def test_inside_a_pattern_both_paths_give_the_same_answer_and_gradient(heads: int) -> None:
    pattern = patterns.random(16, heads, sparsity=0.4, seed=1)
    q = torch.randn(2, 2, 16, 8, generator=torch.Generator().manual_seed(0))
    answers = []
    for path in ("dense", "sparse"):
        gate = gates.Structured(length=16, heads=2, path=path, explore=1.0).eval()
        with torch.no_grad():
            gate.alpha += torch.linspace(0.5, 3.0, gate.alpha.numel()).view_as(gate.alpha)
        output = attend_checked(checked_inputs(q, q, q, gate.attention_arguments(pattern, 0)))
        output.square().sum().backward()
        assert gate.alpha.grad is not None
        answers.append((output.detach(), gate.alpha.grad))
    for dense, sparse in zip(*answers, strict=True):
        torch.testing.assert_close(sparse, dense, atol=1e-5, rtol=1e-5)


def test_the_kernel_gives_the_oracle_answer_for_sampled_lines() -> None:
    if not is_built():
        pytest.skip("the C++ kernel is not built here")
    gate = gates.Structured(length=300, heads=2, initial_density=0.1)
    answers = []
    for backend in ("sparse", "reference"):
        gate.zero_grad()
        gate.resample(0, 0)
        q = torch.randn(2, 2, 300, 16, generator=torch.Generator().manual_seed(0))
        output = attend_checked(checked_inputs(q, q, q, gate.attention_arguments(None, 0)), backend)
        output.square().sum().backward()
        assert gate.alpha.grad is not None
        answers.append((output.detach(), gate.alpha.grad.clone()))
    torch.testing.assert_close(answers[0][0], answers[1][0], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(answers[0][1], answers[1][1], atol=1e-3, rtol=1e-4)
