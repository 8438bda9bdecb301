"""P in pictures: a heat map with its sketch, and learned importance beside trained attention maps."""

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from sparsebert.importance.averages import SKETCH, normalised, sketch
from sparsebert.importance.categories import CategoryTable
from sparsebert.patterns.figures import blank_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_CLIP = 0.5  # per cent of entries left out at either end of the colours, or one outlier would take them all


def heat_range(square: Float[np.ndarray, "n n"]) -> tuple[float, float]:
    """The values that the darkest and the brightest colour stand for."""
    low, high = np.percentile(square, [_CLIP, 100 - _CLIP])
    return float(low), float(high)


def importance_figure(importance: Float[np.ndarray, "heads n n"], title: str) -> "Figure":
    """The paper's second figure: P averaged over heads after normalisation, and its sketch."""
    figure = blank_figure(9, 4.2)
    heat = normalised(importance)
    for place, picture, words in (
        (1, heat, f"{len(heat)} positions"),
        (2, sketch(heat), f"sketch, {SKETCH} positions"),
    ):
        _heat(figure, (1, 2, place), picture, words)
    figure.suptitle(title, fontsize=11)
    return figure


def contrast_figure(learned: tuple[np.ndarray, CategoryTable], trained: tuple[np.ndarray, CategoryTable]) -> "Figure":
    """Learned importance beside trained attention maps: sketches above, categories below."""
    figure = blank_figure(9, 7)
    for column, ((values, table), title) in enumerate(
        ((learned, "learned importance P"), (trained, "trained attention maps")), 1
    ):
        _heat(figure, (2, 2, column), sketch(normalised(values)), title)
        axes = figure.add_subplot(2, 2, 2 + column)
        means = np.array([row.mean for row in table.rows])
        spread = np.array([[row.mean - row.low, row.high - row.mean] for row in table.rows]).T
        # Points, not bars: what differs is small beside zero.
        names = [row.name for row in table.rows]
        axes.errorbar(names, means, yerr=spread.clip(min=0), fmt="o", color="#1f4e8c", capsize=3)
        axes.set_ylabel("mean over heads, 95 % interval")
        axes.tick_params(axis="x", labelrotation=30, labelsize=8)
    return figure


def _heat(figure: "Figure", place: tuple[int, int, int], picture: np.ndarray, title: str) -> None:
    axes = figure.add_subplot(*place)
    draw_heat(axes, picture)
    axes.set_title(title, fontsize=10)
    axes.set_xlabel("key")
    axes.set_ylabel("query")
    axes.locator_params(integer=True)  # positions: there is none at 2.5


def draw_heat(axes: "Axes", picture: np.ndarray, labelsize: float | None = None) -> None:
    """From dark to bright, with the scale of colours beside it."""
    low, high = heat_range(picture)
    shown = axes.imshow(picture, cmap="viridis", vmin=low, vmax=high, interpolation="nearest")
    axes.figure.colorbar(shown, ax=axes, shrink=0.8).ax.tick_params(labelsize=labelsize)
