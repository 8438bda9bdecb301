"""The path of a search: its sparsity at every step."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sparsebert.patterns.figures import blank_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def sparsity_figure(lines: Sequence[Mapping[str, Any]], target: float | None) -> "Figure":
    """Expected sparsity of a search at each step, and where it was led."""
    figure = blank_figure(6, 3.6)
    axes = figure.add_subplot(1, 1, 1)
    axes.plot([line["step"] for line in lines], [line["sparsity"] for line in lines], color="#1f4e8c", label="expected")
    if target is not None:
        axes.axhline(target, color="#c0504d", linestyle="--", linewidth=1, label=f"target {target:.2%}")
    axes.set_xlabel("step")
    axes.set_ylabel("sparsity")
    axes.legend(frameon=False)
    return figure
