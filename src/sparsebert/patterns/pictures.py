"""Patterns as text and as a small inline drawing for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sparsebert.errors import PatternError

if TYPE_CHECKING:
    from sparsebert.patterns.pattern import Pattern

_NOTEBOOK_CELLS = 128  # a side; larger patterns are drawn with several entries a cell


def picture(pattern: Pattern, head: int = 0, width: int | None = None, layer: int = 0) -> str:
    share = cell_shares(pattern, head, pattern.length if width is None else width, layer)
    symbols = np.where(share == 0, ".", np.where(share == 1, "#", "+"))
    return "\n".join("".join(row) for row in symbols)


def cell_shares(pattern: Pattern, head: int, cells: int, layer: int = 0) -> np.ndarray:
    """The share of kept entries in each cell of a cells x cells grid laid over one head."""
    if not 0 <= head < pattern.heads:
        raise PatternError(f"there is no head {head}; the pattern has heads 0 to {pattern.heads - 1}")
    if not 0 <= layer < pattern.layers:
        raise PatternError(f"there is no layer {layer}; the pattern has layers 0 to {pattern.layers - 1}")
    length, cells = pattern.length, min(cells, pattern.length)
    cell_of = np.arange(length, dtype=np.int64) * cells // length
    size = np.bincount(cell_of, minlength=cells)
    entries = pattern.entries(head, layer)
    counts = np.bincount(cell_of[entries // length] * cells + cell_of[entries % length], minlength=cells**2)
    return counts.reshape(cells, cells) / np.outer(size, size)


def html(pattern: Pattern) -> str:
    """An inline SVG of every head, a row a layer where there are several; no script, no outside resource."""
    rows = "".join(f"<div>{_layer_drawings(pattern, layer)}</div>" for layer in range(pattern.layers))
    drawings = rows if pattern.layers > 1 else _layer_drawings(pattern, 0)
    layers = f"{pattern.layers} layers of " if pattern.layers > 1 else ""
    title = f"{layers}{pattern.heads} heads, length {pattern.length}, {pattern.sparsity:.2%} sparse"
    return f'<div><div style="font:12px sans-serif">{title}</div>{drawings}</div>'


def _layer_drawings(pattern: Pattern, layer: int) -> str:
    return "".join(
        f'<figure style="margin:4px;display:inline-block">{_svg(pattern, head, layer)}'
        f'<figcaption style="font:11px sans-serif;text-align:center">{head_name(pattern, head, layer)}</figcaption>'
        "</figure>"
        for head in range(pattern.heads)
    )


def head_name(pattern: Pattern, head: int, layer: int) -> str:
    """What to write beneath the drawing of a head."""
    return f"head {head}" if pattern.layers == 1 else f"layer {layer}, head {head}"


def _svg(pattern: Pattern, head: int, layer: int) -> str:
    share = cell_shares(pattern, head, _NOTEBOOK_CELLS, layer)
    cells = len(share)
    runs = "".join(
        f"M{start} {row}h{stop - start}v1h{start - stop}z"
        for row in range(cells)
        for start, stop in _runs(share[row] > 0)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {cells} {cells}" width="128" height="128" '
        f'shape-rendering="crispEdges"><rect width="{cells}" height="{cells}" fill="#eef1f5"/>'
        f'<path d="{runs}" fill="#1f4e8c"/></svg>'
    )


def _runs(row: np.ndarray) -> list[tuple[int, int]]:
    """Starts and stops of the runs of True."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], row, [False]])))
    return [(int(start), int(stop)) for start, stop in edges.reshape(-1, 2)]
