"""Figures of P."""

from pathlib import Path

from sparsebert.importance.categories import tabulate
from sparsebert.importance.figures import contrast_figure, importance_figure
from sparsebert.patterns.figures import save_figure
from tests.importance.planted import planted


def test_figures_are_drawn_and_the_same_twice(tmp_path: Path) -> None:
    values = planted()
    table = tabulate(values)
    for copy in "ab":
        save_figure(importance_figure(values, "P"), tmp_path / f"importance-{copy}.svg")
        save_figure(contrast_figure((values, table), (values, table)), tmp_path / f"contrast-{copy}.svg")
    for name in ("importance", "contrast"):
        assert (tmp_path / f"{name}-a.svg").read_bytes() == (tmp_path / f"{name}-b.svg").read_bytes()
