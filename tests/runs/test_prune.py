"""Patterns from importance, and as sparse ones at random."""

from pathlib import Path

import pytest

from sparsebert import gates, patterns
from sparsebert.errors import ConfigError
from sparsebert.runs import PruneRun


def test_the_least_important_entries_go_and_at_random_as_many(tmp_path: Path) -> None:
    gate = gates.Soft(8, 2)
    gate.alpha.data[:, gate.on_diagonal] = -3.0
    gates.save(gate, tmp_path / "gate.safetensors")
    pruned = PruneRun(sparsity=1 / 8, importance=tmp_path).pattern()
    assert pruned.keep().tolist() == patterns.full(8, 2).without_diagonal().keep().tolist()
    drawn = PruneRun(sparsity=1 / 8, importance=tmp_path, method="random", seed=3).pattern()
    assert drawn == PruneRun(sparsity=1 / 8, method="random", length=8, heads=2, seed=3).pattern()
    assert drawn.sparsity == pruned.sparsity


def test_without_an_importance_run_there_is_nothing_to_prune_by() -> None:
    for given in ({}, {"method": "random", "length": 8}):
        with pytest.raises(ConfigError, match="no importance run"):
            PruneRun(sparsity=0.5, **given)  # type: ignore[arg-type]
