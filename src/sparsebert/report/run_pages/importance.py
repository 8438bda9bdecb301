"""What an importance run found, as sections: by category, by distance, and as a picture."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from sparsebert.importance.averages import SKETCH, normalised, offset_profile, sketch
from sparsebert.importance.categories import Category, CategoryTable
from sparsebert.report.rendering.explorer import pack_values
from sparsebert.report.rendering.figures.pictures import small
from sparsebert.report.rendering.figures.shapes import Chart, Gallery, Panel, Picture, Point, Series
from sparsebert.report.rendering.tables import Cell, Row, Table
from sparsebert.report.run_pages.sections import Listing, Section, Tile


@dataclass(frozen=True)
class Found:
    """Values of every entry by one method, and their table."""

    title: str
    values: Float[np.ndarray, "heads n n"]
    table: CategoryTable


def importance_tiles(table: CategoryTable) -> tuple[Tile, ...]:
    ranked = sorted(table.rows, key=lambda row: row.rank)
    return (
        Tile(ranked[0].name, "matters most"),
        Tile(ranked[-1].name, "matters least"),
        Tile(f"{table['diagonal'].rank} of {len(ranked)}", "rank of the diagonal"),
    )


def importance_section(found: Sequence[Found]) -> Section:
    """One method, or two side by side."""
    pictures = []
    for one in found:
        heat = normalised(one.values)
        pictures += [Picture(one.title, small(heat)), Picture(f"{one.title}, sketch", sketch(heat))]
    caption = (
        "A query is a row, a key a column. Mean over heads after each row was divided by its mean, so 1 is average; "
        f"dark is least, bright is most. The sketch keeps distances and the border, and shows {SKETCH} positions."
    )
    return Section(
        "importance",
        "Importance",
        "Which entries matter",
        found[0].table.verdict(),
        (
            Gallery("heat", "Importance of every entry", caption, tuple(pictures), "heat"),
            _chart(found),
            *(Listing(_table(one, number), "Entries") for number, one in enumerate(found, 1)),
        ),
    )


def _chart(found: Sequence[Found]) -> Chart:
    panels = []
    for one in found:
        means = tuple(
            Point(place, row.mean, (row.low, row.high), name=row.name) for place, row in enumerate(one.table.rows)
        )
        names = tuple((float(place), row.name) for place, row in enumerate(one.table.rows))
        profile = tuple(Point(distance, mean) for distance, mean in enumerate(offset_profile(one.values)))
        panels += [
            Panel(f"{one.title}, by category", "", "mean", (Series("mean", means, 0, joined=False),), names),
            Panel(f"{one.title}, by distance", "distance |offset|", "mean", (Series("mean", profile, 0),)),
        ]
    caption = "Means over heads. Bars are 95 % bootstrap intervals over heads; distances are counted off the border."
    return Chart("profile", "By category and by distance", caption, tuple(panels))


def _table(found: Found, number: int) -> Table:
    rows = tuple(
        Row(
            row.name,
            (
                *(Cell(value, digits=4) for value in (row.mean, row.low, row.high)),
                *(Cell(float(count), digits=0) for count in (row.rank, row.entries)),
                *(Cell(None if row.name == "diagonal" else value, digits=4) for value in _above(row)),
            ),
        )
        for row in found.table.rows
    )
    columns = ("Mean", "Low", "High", "Rank", "Entries", "Above the diagonal", "Low", "High")
    caption = (
        "Mean over heads; low and high are the ends of its 95 % bootstrap interval over heads. Entries of one head."
    )
    return Table(f"categories-{number}", found.title, caption, columns, rows, has_paper=False)


def _above(row: Category) -> tuple[float, float, float]:
    return row.above, row.above_low, row.above_high


def importance_sources(found: Sequence[Found]) -> tuple[dict[str, Any], ...]:
    """The mean, in which 1 is average; then head by head."""
    means = [
        pack_values(f"{one.title}, mean over heads", normalised(one.values)[None], as_values=True) for one in found
    ]
    heads = [pack_values(f"{one.title}, head by head", one.values, as_values=True) for one in found]
    return (*means, *heads)
