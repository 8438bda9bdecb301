"""What a layer needs is read off its pattern and its gate."""

from pathlib import Path

import pytest
import torch

from sparsebert import gates
from sparsebert.gates import Structured
from sparsebert.importance.by_layer import layer_needs, needs_of_search
from sparsebert.patterns import from_offsets, star

N = 12
PATTERN = from_offsets(N, [[[0], [0, 1, -1]], [[2, -2], []]], border=False)


def test_density_and_the_diagonal_are_told_by_layer_and_head() -> None:
    first, second = layer_needs(PATTERN)
    assert first.densities == (N / N**2, (N + 2 * (N - 1)) / N**2)
    assert (first.keeps_diagonal, second.keeps_diagonal) == (1.0, 0.0)
    assert second.densities[1] == 0.0
    assert first.log_odds is None
    assert first.diagonal_is_least is None


def planted(folder: Path, layers: int = 2) -> None:
    """A gate that would rather drop the diagonal in its first layer, and keep it in its second."""
    gate = Structured(N, 2, layers=layers, settings="distilled")
    with torch.no_grad():
        gate.alpha.zero_()
        gate.alpha[:2, 0] = -1.0
        gate.alpha[2:, 0] = 1.0
    folder.mkdir()
    gates.save(gate, folder / "gate.safetensors")
    PATTERN.save(folder / "pattern.safetensors")


def test_the_gate_says_in_which_layers_the_diagonal_is_least(tmp_path: Path) -> None:
    planted(tmp_path / "run")
    needs = needs_of_search(tmp_path / "run")
    assert needs is not None
    assert [one.diagonal_is_least for one in needs] == [True, False]
    assert needs[0].log_odds is not None
    assert needs[0].log_odds["diagonal"] == pytest.approx(-1.0)
    assert needs[0].log_odds["other"] == pytest.approx(0.0)


def test_a_search_without_layers_or_without_a_pattern_says_nothing(tmp_path: Path) -> None:
    assert needs_of_search(tmp_path) is None
    star(N).save(tmp_path / "pattern.safetensors")
    assert needs_of_search(tmp_path) is None
