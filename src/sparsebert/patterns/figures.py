"""Patterns as matplotlib figures: one head, all heads in a grid, the six of the paper's first figure."""

import io
from pathlib import Path
from typing import TYPE_CHECKING

from sparsebert.files import write_atomic
from sparsebert.patterns import handmade
from sparsebert.patterns.pattern import Pattern
from sparsebert.patterns.pictures import cell_shares, head_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_CELLS = 256  # a side; finer than that is below a printed dot
_GRID_LINES_UP_TO = 32  # positions; thin lines between cells help only while cells are large


def draw_head(axes: "Axes", pattern: Pattern, head: int = 0, title: str | None = None, layer: int = 0) -> None:
    """One head: kept entries dark, queries down, keys across."""
    axes.imshow(cell_shares(pattern, head, _CELLS, layer), cmap="Blues", vmin=0, vmax=1, interpolation="nearest")
    axes.set_title(title or head_name(pattern, head, layer), fontsize=9)
    axes.set_xticks([])
    axes.set_yticks([])
    if pattern.length <= _GRID_LINES_UP_TO:
        for line in range(1, pattern.length):
            axes.axhline(line - 0.5, color="white", linewidth=0.6)
            axes.axvline(line - 0.5, color="white", linewidth=0.6)
    for spine in axes.spines.values():
        spine.set_color("#888888")


def head_grid(pattern: Pattern, title: str | None = None) -> "Figure":
    """Every head of a pattern: six a row, or with several layers a row a layer."""
    columns = min(pattern.heads, 6) if pattern.layers == 1 else pattern.heads
    rows = -(-len(pattern.row_starts) // columns)
    figure = blank_figure(columns * 1.9, rows * 2.1 + 0.4)
    for layer in range(pattern.layers):
        for head in range(pattern.heads):
            place = layer * pattern.heads + head + 1
            draw_head(figure.add_subplot(rows, columns, place), pattern, head, layer=layer)
    figure.suptitle(title or f"length {pattern.length}, {pattern.sparsity:.1%} sparse", fontsize=11)
    return figure


def paper_patterns(length: int = 16, seed: int = 1) -> "Figure":
    """The six hand-made patterns side by side (the paper's first figure)."""
    shown = {
        "Star": handmade.star(length),
        "LogSparse": handmade.log_sparse(length),
        "Strided": handmade.strided(length),
        "Fixed": handmade.fixed(length),
        "Longformer": handmade.longformer(length, reading="text", seed=seed),
        "BigBird": handmade.big_bird(length, seed=seed),
    }
    figure = blank_figure(12, 2.5)
    for number, (name, pattern) in enumerate(shown.items(), 1):
        draw_head(figure.add_subplot(1, len(shown), number), pattern, 0, f"{name} ({pattern.sparsity:.0%} sparse)")
    return figure


def save_figure(figure: "Figure", path: Path) -> None:
    """PNG, SVG or PDF by the file's ending; the same figure gives the same bytes."""
    import matplotlib

    kind, drawn = path.suffix[1:], io.BytesIO()
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind, {})
    with matplotlib.rc_context({"svg.hashsalt": "sparsebert"}):
        figure.savefig(drawn, format=kind, dpi=150, metadata=metadata)
    write_atomic(path, drawn.getvalue())


def blank_figure(width: float, height: float) -> "Figure":
    """An empty figure, in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")
