"""What a pattern keeps, counted by layer, head and distance."""

import numpy as np
import pytest

from sparsebert import patterns
from sparsebert.report.rendering.figures.shapes import Chart
from sparsebert.report.run_pages.pattern import pattern_section
from sparsebert.report.run_pages.sections import Listing


def parts(keep: np.ndarray) -> tuple[Chart, Listing]:
    chart, listing = pattern_section(patterns.from_keep(keep)).parts
    assert isinstance(chart, Chart)
    assert isinstance(listing, Listing)
    return chart, listing


def test_keys_are_counted_by_layer_and_head() -> None:
    keep = np.zeros((2, 2, 6, 6), dtype=bool)
    keep[0, 0] = np.eye(6, dtype=bool)
    keep[1, 1] = True
    _, listing = parts(keep)
    shown = [[cell.value for cell in row.cells] for row in listing.table.rows]
    assert listing.table.columns == ("Sparsity %", "All heads", "Head 1", "Head 2")
    assert shown == [pytest.approx([100 * (1 - 1 / 12), 0.5, 1.0, 0.0]), pytest.approx([50.0, 3.0, 0.0, 6.0])]


def test_distances_are_shares_of_what_lies_off_the_border() -> None:
    near = np.abs(np.arange(6)[:, None] - np.arange(6)) == 1
    border = np.zeros((6, 6), dtype=bool)
    border[0] = border[-1] = border[:, 0] = border[:, -1] = True
    chart, _ = parts(np.stack([near, border]))
    assert [point.y for point in chart.panels[1].series[0].points] == [0.0, 0.5, 0.0, 0.0]
