"""Figures of what a run learned: importance and its sketch, both methods side by side, the path of sparsity."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from sparsebert.training.categories import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SKETCH = 16  # positions a side
_CLIP = 0.5  # per cent of entries left out at either end of the colours, or one outlier would take them all


def normalised(importance: Float[np.ndarray, "heads n n"]) -> Float[np.ndarray, "n n"]:
    """P averaged over heads, each row of each head divided by its mean.

    Attention is a softmax over a row, so P has a meaning only relative to its row.
    """
    mean: np.ndarray = (importance / importance.mean(-1, keepdims=True)).mean(0)
    return mean


def sketch(importance: Float[np.ndarray, "heads n n"], size: int = _SKETCH) -> Float[np.ndarray, "size size"]:
    """The same picture for a short input: the mean of each distance, and of the first and last row and column.

    Averaging blocks would blur the very lines that matter, so distances are kept and lengths are not.
    """
    full, n = normalised(importance), importance.shape[-1]
    size = min(size, n)
    inner = full[1:-1, 1:-1]
    lines = np.array([(np.diagonal(inner, d).mean() + np.diagonal(inner, -d).mean()) / 2 for d in range(size - 2)])
    places = np.arange(size)
    small: np.ndarray = lines[np.abs(places[:, None] - places).clip(max=size - 3)]
    small[0, :], small[-1, :] = full[0, 1:-1].mean(), full[-1, 1:-1].mean()
    small[:, 0], small[:, -1] = full[1:-1, 0].mean(), full[1:-1, -1].mean()
    for row, column in ((0, 0), (0, -1), (-1, 0), (-1, -1)):
        small[row, column] = full[row, column]
    return small


def importance_figure(importance: Float[np.ndarray, "heads n n"], title: str) -> "Figure":
    """The paper's second figure: P averaged over heads after normalisation, and its sketch."""
    figure = _figure(9, 4.2)
    for place, picture, words in (
        (1, normalised(importance), f"{importance.shape[-1]} positions"),
        (2, sketch(importance), f"sketch, {_SKETCH} positions"),
    ):
        _heat(figure, (1, 2, place), picture, words)
    figure.suptitle(title, fontsize=11)
    return figure


def contrast_figure(learned: tuple[np.ndarray, Table], trained: tuple[np.ndarray, Table]) -> "Figure":
    """Learned importance beside trained attention maps: sketches above, categories below."""
    figure = _figure(9, 7)
    for column, ((values, table), title) in enumerate(
        ((learned, "learned importance P"), (trained, "trained attention maps")), 1
    ):
        _heat(figure, (2, 2, column), sketch(values), title)
        axes = figure.add_subplot(2, 2, 2 + column)
        means = np.array([row.mean for row in table.rows])
        spread = np.array([[row.mean - row.low, row.high - row.mean] for row in table.rows]).T
        # Points, not bars: what differs is small beside zero.
        names = [row.name for row in table.rows]
        axes.errorbar(names, means, yerr=spread.clip(min=0), fmt="o", color="#1f4e8c", capsize=3)
        axes.set_ylabel("mean over heads, 95 % interval")
        axes.tick_params(axis="x", labelrotation=30, labelsize=8)
    return figure


def sparsity_figure(lines: Sequence[Mapping[str, Any]], target: float | None) -> "Figure":
    """Expected sparsity of a search at each step, and where it was led."""
    figure = _figure(6, 3.6)
    axes = figure.add_subplot(1, 1, 1)
    axes.plot([line["step"] for line in lines], [line["sparsity"] for line in lines], color="#1f4e8c", label="expected")
    if target is not None:
        axes.axhline(target, color="#c0504d", linestyle="--", linewidth=1, label=f"target {target:.2%}")
    axes.set_xlabel("step")
    axes.set_ylabel("sparsity")
    axes.legend(frameon=False)
    return figure


def _heat(figure: "Figure", place: tuple[int, int, int], picture: np.ndarray, title: str) -> None:
    axes = figure.add_subplot(*place)
    low, high = np.percentile(picture, [_CLIP, 100 - _CLIP])
    shown = axes.imshow(picture, cmap="viridis", vmin=low, vmax=high, interpolation="nearest")
    axes.set_title(title, fontsize=10)
    axes.set_xlabel("key")
    axes.set_ylabel("query")
    axes.locator_params(integer=True)  # positions: there is none at 2.5
    figure.colorbar(shown, ax=axes, shrink=0.8)


def _figure(width: float, height: float) -> "Figure":
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")
