"""A gate that is learned inside a pattern: what lies outside counts nowhere and is never kept."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from sparsebert import Pattern, gates, patterns
from sparsebert.errors import GateError
from sparsebert.gates import Gate

N, HEADS = 16, 2
INSIDE = patterns.random(N, HEADS, sparsity=0.5, seed=2)
KINDS = [gates.Structured, gates.Unstructured, gates.Soft]


def restricted(kind: Any, pattern: Pattern = INSIDE, **arguments: Any) -> Any:
    gate = kind(length=N, heads=HEADS, **arguments)
    with torch.no_grad():
        gate.alpha += torch.randn(gate.alpha.shape, generator=torch.Generator().manual_seed(0))
    gate.restrict(pattern)
    return gate


def density_inside(gate: Gate, pattern: Pattern) -> float:
    """The share of all entries that lie inside, each counted as likely as it is kept."""
    return float((gate.spread(gate.probabilities()).detach() * pattern.keep()).sum() / (HEADS * N**2))


@pytest.mark.parametrize("pattern", [INSIDE, patterns.star(N)], ids=["of its heads", "shared"])
@pytest.mark.parametrize("kind", KINDS)
def test_only_entries_inside_count_in_the_density(kind: Any, pattern: Pattern) -> None:
    gate = restricted(kind, pattern)
    assert float(gate.expected_density().detach()) == pytest.approx(density_inside(gate, pattern), rel=1e-5)
    gate.restrict(None)
    assert float(gate.expected_density().detach()) == pytest.approx(density_inside(gate, patterns.full(N)), rel=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_the_penalty_moves_no_unit_that_lies_outside(kind: Any) -> None:
    gate = restricted(kind, patterns.window(N, radius=2), penalty=1.0)
    gate.penalty().backward()
    outside = gate.units_of(np.setdiff1d(np.arange(N**2), patterns.window(N, radius=2).entries()))
    inside = gate.units_of(patterns.window(N, radius=2).entries())
    only_outside = np.setdiff1d(outside[outside >= 0], inside)
    assert len(only_outside) > 0
    assert not gate.alpha.grad[:, only_outside].any()
    assert (gate.alpha.grad[:, np.unique(inside[inside >= 0])] > 0).all()


@pytest.mark.parametrize("diagonal", ["learned", "keep", "drop"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_frozen_gate_lies_inside_and_meets_the_sparsity(kind: Any, diagonal: Any) -> None:
    gate = restricted(kind)
    frozen = gate.freeze(sparsity=0.75, diagonal=diagonal)
    assert frozen & INSIDE == frozen
    assert frozen.sparsity == pytest.approx(0.75, abs=0.01)
    undirected = gate.freeze(method="threshold")
    assert undirected & INSIDE == undirected


def test_the_target_starts_from_what_lies_inside() -> None:
    gate = restricted(gates.Unstructured, sparsity=0.9)
    assert gate.target_density(0) == pytest.approx(INSIDE.density / 2)


@pytest.mark.parametrize(
    ("pattern", "arguments", "words"),
    [
        (patterns.star(N + 1), {}, "17"),
        (patterns.star(N, heads=3), {}, "3"),
        (patterns.star(N).anchored("token"), {}, "anchor='token'"),
        (INSIDE, {"sparsity": 0.5}, "inside=False"),
    ],
)
def test_a_pattern_that_does_not_fit_is_refused_and_the_gate_stays_as_it_was(
    pattern: Pattern, arguments: dict[str, Any], words: str
) -> None:
    gate = gates.Unstructured(length=N, heads=HEADS, **arguments)
    with pytest.raises(GateError, match=words):
        gate.restrict(pattern)
    assert gate.inside is None


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_gate_is_still_inside_its_pattern(kind: Any, tmp_path: Path) -> None:
    gate = restricted(kind)
    gates.save(gate, tmp_path / "gate.safetensors")
    again = gates.load(tmp_path / "gate.safetensors")
    assert again.inside == INSIDE
    assert again.freeze(sparsity=0.8) == gate.freeze(sparsity=0.8)
