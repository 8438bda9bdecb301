"""Every figure of the paper, filled; drawings that are well formed."""

import io
from base64 import b64decode
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from sparsebert.report.rendering.contents import all_figures
from sparsebert.report.rendering.document import environment
from sparsebert.report.rendering.figures.axes import Axis, log_ticks, ticks
from sparsebert.report.rendering.figures.charts import frontier_chart
from sparsebert.report.rendering.figures.images import colours, data_uri
from sparsebert.report.rendering.figures.labels import place_labels
from sparsebert.report.rendering.figures.layout import lay_out
from sparsebert.report.rendering.figures.plots import save_figures
from sparsebert.report.rendering.figures.shapes import Chart, Gallery, Panel, Point, Series
from sparsebert.studies.results import Study
from sparsebert.tasks import GLUE


def test_every_figure_of_the_paper_is_there_and_filled(study: Study) -> None:
    figures = all_figures(study)
    assert {"1", "2", "3", "4", "5", "6", "7"} <= {figure.number for figure in figures}
    for figure in figures:
        assert figure.panels if isinstance(figure, Chart) else figure.pictures, figure.key


def test_the_panels_are_the_papers(study: Study) -> None:
    figures = {figure.key: figure for figure in all_figures(study)}
    pruning = figures["pruning"]
    assert isinstance(pruning, Chart)
    assert [panel.title for panel in pruning.panels] == ["MNLI", "QQP", "QNLI", "SST-2", "CoLA", "STS-B", "MRPC", "RTE"]
    assert all(len(series.points) == 10 for panel in pruning.panels for series in panel.series)
    stages = figures["stages"]
    assert isinstance(stages, Chart)
    assert [panel.title for panel in stages.panels] == ["QNLI", "MRPC", "Held-out MLM loss"]
    learned = figures["learned-structured"]
    assert isinstance(learned, Gallery)
    assert len(learned.pictures) == 4


def test_the_mean_of_the_tasks_is_over_those_that_every_pattern_and_seed_has(study: Study) -> None:
    lost = next(run for run in study.scored("patterns") if run.task == "rte" and run.condition.pattern == "star")
    fewer = replace(study, runs=tuple(run for run in study.runs if run.id != lost.id))
    panel = frontier_chart(fewer).panels[0]
    assert panel.title == "Mean of the tasks"
    used = {
        run.task for series in panel.series for point in series.points for run in fewer.runs if run.id in point.runs
    }
    assert used == set(GLUE) - {"rte"}


def test_svg_is_well_formed_and_escapes_names() -> None:
    point = Point(1.0, 2.0, (1.5, 2.5), (1.9, 2.1), ("a",), "<b>&")
    panel = Panel("<i>", "x & y", '"', (Series("</svg>", (point, Point(2.0, 3.0)), 0, labelled=True),))
    templates = environment(lambda runs: "./runs/a/" if runs else None)
    draw = templates.from_string('{% from "figures.html" import panel as draw %}{{ draw(panel, at) }}')
    root = ElementTree.fromstring(draw.render(panel=panel, at=lay_out(panel, large=True)))
    assert root.get("aria-label", "").startswith("<i>: ")
    assert "".join(next(root.iter("title")).itertext()).startswith("<b>& at 1")


def test_an_image_holds_its_pixels() -> None:
    square = np.linspace(0, 1, 16).reshape(4, 4)
    kind, data = data_uri(square).split(",")
    assert kind == "data:image/png;base64"
    assert (np.array(Image.open(io.BytesIO(b64decode(data)))) == colours(square)).all()


def test_kept_entries_are_filled_and_the_rest_is_clear() -> None:
    found = colours(np.eye(3, dtype=bool))
    assert (found[..., 3] == 255 * np.eye(3)).all()


def test_heat_runs_from_dark_to_bright() -> None:
    found = colours(np.linspace(0, 1, 100).reshape(10, 10)).astype(int)
    assert found[0, 0].sum() < found[5, 0].sum() < found[-1, -1].sum()


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_ticks_lie_within_their_range(low: float, width: float) -> None:
    found = ticks(low, low + width)
    slack = 1e-9 * (abs(low) + width)
    assert 1 <= len(found) <= 12
    assert all(low - slack <= value <= low + width + slack for value in found)


def test_axes_go_both_ways_and_by_powers() -> None:
    assert Axis(0, 10, 100, 0)(2.5) == 75
    assert Axis(1e-4, 1e-1, 0, 300, log=True)(1e-3) == pytest.approx(100)
    assert log_ticks(9e-5, 0.2) == pytest.approx([1e-4, 1e-3, 1e-2, 1e-1])


def test_names_of_points_do_not_cover_each_other() -> None:
    named = [(100.0, 100.0, "first"), (104.0, 100.0, "second")]
    placed = place_labels(named, [(100.0, 100.0), (104.0, 100.0)], (0, 0, 300, 200))
    (left, base, _), (other_left, other_base, other) = placed
    apart = abs(base - other_base) >= 8 or abs(left - other_left) >= 5 * min(len("first"), len(other))
    assert apart


def test_figures_are_written_as_svg_and_pdf_with_equal_bytes(study: Study, tmp_path: Path) -> None:
    chosen = [figure for figure in all_figures(study) if figure.key in ("penalty", "heat")]
    first, second = save_figures(chosen, tmp_path / "a"), save_figures(chosen, tmp_path / "b")
    assert sorted(path.name for path in first) == ["heat.pdf", "heat.svg", "penalty.pdf", "penalty.svg"]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
