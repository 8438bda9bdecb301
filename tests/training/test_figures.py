"""Figures: what they show is what was planted."""

from pathlib import Path

import numpy as np

from sparsebert.patterns.figures import save_figure
from sparsebert.training.categories import tabulate
from sparsebert.training.figures import contrast_figure, importance_figure, normalised, sketch, sparsity_figure


def planted(length: int = 40) -> np.ndarray:
    places = np.arange(length)
    values = np.full((3, length, length), 0.5)
    values[:, places, places] = 0.25
    values[:, :, 0] = 1.0
    return values


def test_rows_are_normalised_to_mean_one() -> None:
    np.testing.assert_allclose(normalised(planted()).mean(-1), 1.0)


def test_the_sketch_keeps_lines_and_border_at_sixteen_positions() -> None:
    small = sketch(planted())
    assert small.shape == (16, 16)
    inner = small[1:-1, 1:-1]
    assert (np.diagonal(inner) < 0.6).all()
    assert (np.diagonal(inner, 1) > 0.9).all()
    assert (small[1:-1, 0] > 1.5).all()


def test_figures_are_drawn_and_the_same_twice(tmp_path: Path) -> None:
    values = planted()
    table = tabulate(values)
    lines = [{"step": step, "sparsity": step / 10} for step in range(1, 6)]
    for name, make in {
        "importance": lambda: importance_figure(values, "P"),
        "contrast": lambda: contrast_figure((values, table), (values, table)),
        "sparsity": lambda: sparsity_figure(lines, 0.9),
    }.items():
        for copy in "ab":
            save_figure(make(), tmp_path / f"{name}-{copy}.svg")
        assert (tmp_path / f"{name}-a.svg").read_bytes() == (tmp_path / f"{name}-b.svg").read_bytes()
