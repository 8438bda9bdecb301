"""What a pattern keeps, as a section: sparsity and keys a query, by layer, head and distance."""

from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from sparsebert.importance.saved import find_importance
from sparsebert.patterns import Pattern
from sparsebert.report.rendering.explorer import BUDGET, pack_pattern, pack_values
from sparsebert.report.rendering.figures.shapes import Chart, Panel, Point, Series
from sparsebert.report.rendering.tables import Cell, Row, Table
from sparsebert.report.run_pages.sections import Listing, Section, Tile


def pattern_tiles(pattern: Pattern) -> tuple[Tile, ...]:
    return (
        Tile(f"{pattern.sparsity:.1%}", "of the entries are left out"),
        Tile(f"{pattern.keys_per_query:.1f}", f"keys a query, of {pattern.length}"),
    )


def pattern_section(pattern: Pattern) -> Section:
    lead = (
        f"{pattern.layers} layers of {pattern.heads} heads"
        if pattern.layers > 1
        else f"{pattern.heads} heads, the same in all layers"
    )
    return Section(
        "kept",
        "Kept",
        "What was kept",
        f"{lead}, at {pattern.length} tokens. A query attends to {pattern.keys_per_query:.1f} keys in the mean.",
        (_chart(pattern), Listing(_table(pattern), "Layer")),
    )


def _chart(pattern: Pattern) -> Chart:
    keys = _keys_a_query(pattern)
    means = tuple(Point(layer, float(mean)) for layer, mean in enumerate(keys.mean(1)))
    heads = tuple(
        Point(layer, float(value), name=f"head {head}")
        for layer, row in enumerate(keys)
        for head, value in enumerate(row, 1)
    )
    by_layer = (Series("mean of a layer", means, colour=1), Series("one head", heads, colour=0, joined=False))
    distances = tuple(Point(distance, float(share)) for distance, share in enumerate(_shares(pattern)))
    panels = (
        Panel("By layer", "layer", "keys a query", by_layer, tuple(enumerate(_layer_names(pattern)))),
        Panel("By distance", "distance |offset|", "share kept", (Series("all heads", distances, colour=2),)),
    )
    caption = "Distances are counted off the border: the first and last row and column of the attention matrix."
    return Chart("keys", "Keys a query, and which distances", caption, panels)


def _layer_names(pattern: Pattern) -> list[str]:
    return [str(layer) for layer in range(1, pattern.layers + 1)] if pattern.layers > 1 else ["all"]


def _keys_a_query(pattern: Pattern) -> Float[np.ndarray, "layers heads"]:
    kept = pattern.row_starts[:, -1] - pattern.row_starts[:, 0]
    return np.asarray(kept.reshape(pattern.layers, pattern.heads) / pattern.length)


def _shares(pattern: Pattern) -> Float[np.ndarray, " distances"]:
    """Of the entries of each distance, off the border: how many are kept, over all heads."""
    n, counts = pattern.length, np.zeros(pattern.length)
    for _, _, entries in pattern.each_head():
        rows, columns = entries // n, entries % n
        inside = (np.minimum(rows, columns) > 0) & (np.maximum(rows, columns) < n - 1)
        counts += np.bincount(np.abs(rows - columns)[inside], minlength=n)
    of_head = np.array([n - 2, *(2 * (n - 2 - distance) for distance in range(1, n - 2))]).clip(min=1)
    return np.asarray(counts[: len(of_head)] / (of_head * len(pattern.row_starts)))


def _table(pattern: Pattern) -> Table:
    names = [f"Layer {name}" for name in _layer_names(pattern)] if pattern.layers > 1 else ["All layers"]
    rows = tuple(
        Row(
            name, (Cell(100 * (1 - row.mean() / pattern.length)), *(Cell(float(value)) for value in (row.mean(), *row)))
        )
        for name, row in zip(names, _keys_a_query(pattern), strict=True)
    )
    columns = ("Sparsity %", "All heads", *(f"Head {head}" for head in range(1, pattern.heads + 1)))
    caption = f"Keys a query of every head, of {pattern.length}; a head without any adds nothing to its layer."
    return Table("keys", "Every head", caption, columns, rows, has_paper=False)


def learned_source(title: str, run: Path, pattern: Pattern) -> dict[str, Any]:
    """What a search gave every entry, with what was frozen; the pattern alone where that would be too large."""
    # Sixteen bits an entry, or half as many, in a text of 4 letters for 3 bytes.
    is_small = len(pattern.row_starts) * pattern.length**2 * 4 / 3 < BUDGET
    values = find_importance(run) if is_small else None
    if values is not None:
        packed = pack_values(title, values, None, pattern)
        if len(packed["packed"]) < BUDGET:
            return packed
    return pattern_source(title, pattern, "as it was frozen")


def pattern_source(title: str, pattern: Pattern, said: str) -> dict[str, Any]:
    """A pattern as it is; of one that is too large for a page, the corner of its first positions."""
    most = int((BUDGET * 3 / 4 * 8 / len(pattern.row_starts)) ** 0.5)
    if pattern.length <= most:
        return pack_pattern(title, pattern, said=said)
    corner = pattern.anchored("position").crop(most)
    return pack_pattern(f"{title}, the first {most} of {pattern.length:,} positions", corner, said=said)
