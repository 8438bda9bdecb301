"""The path of a search, drawn."""

from pathlib import Path

from sparsebert.patterns.figures import save_figure
from sparsebert.training.figures import sparsity_figure


def test_the_figure_is_the_same_twice_and_shows_its_target(tmp_path: Path) -> None:
    lines = [{"step": step, "sparsity": step / 10} for step in range(1, 6)]
    for name, target in (("a", 0.9), ("b", 0.9), ("c", None)):
        save_figure(sparsity_figure(lines, target), tmp_path / f"{name}.svg")
    first, second, without = ((tmp_path / f"{name}.svg").read_bytes() for name in "abc")
    assert first == second != without
