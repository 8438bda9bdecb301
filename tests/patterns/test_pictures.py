"""Pictures: text, notebook drawing, figures."""

from pathlib import Path

import pytest

from sparsebert import patterns
from sparsebert.patterns.figures import head_grid, paper_patterns, save_figure


def test_a_narrow_picture_tells_full_mixed_and_empty_cells_apart() -> None:
    pattern = patterns.from_offsets(4, [[0, 1]]) | patterns.from_offsets(4, [[-1]])
    assert pattern.picture() == "##..\n###.\n.###\n..##"
    assert pattern.picture(width=2) == "#+\n+#"
    assert patterns.window(4, radius=0).picture(width=2) == "+.\n.+"


def test_the_notebook_drawing_shows_every_head_without_scripts() -> None:
    html = patterns.big_bird(300, heads=2)._repr_html_()
    assert html.count("<svg") == 2
    assert "script" not in html
    assert len(html) < 200_000


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_figures_are_written_and_byte_stable(tmp_path: Path, ending: str) -> None:
    for name in ("a", "b"):
        save_figure(head_grid(patterns.star(16, heads=3)), tmp_path / f"{name}.{ending}")
    assert (tmp_path / f"a.{ending}").stat().st_size > 1000
    assert (tmp_path / f"a.{ending}").read_bytes() == (tmp_path / f"b.{ending}").read_bytes()


def test_the_papers_first_figure_shows_six_patterns() -> None:
    assert len(paper_patterns().axes) == 6
