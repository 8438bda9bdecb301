"""The same figures by matplotlib, as SVG or PDF files for papers."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from sparsebert.importance.figures import heat_range
from sparsebert.patterns.figures import blank_figure, save_figure
from sparsebert.report.rendering.figures.axes import Axis, span
from sparsebert.report.rendering.figures.labels import place_labels
from sparsebert.report.rendering.figures.shapes import Chart, Figure, Gallery, Panel, Picture, Series

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

_COLOURS = ("#2463c9", "#0d8a6a", "#c25a10", "#7d8591", "#8a3fb0")
_FRAME, _UNIT = (300.0, 205.0), 1.45


def save_figures(figures: Iterable[Figure], folder: Path, endings: tuple[str, ...] = ("svg", "pdf")) -> list[Path]:
    """One file a figure and ending; figures that have nothing to show are left out."""
    written = []
    for figure in figures:
        if not figure.is_empty:
            drawing = draw(figure)
            for ending in endings:
                path = folder / f"{figure.key}.{ending}"
                save_figure(drawing, path)
                written.append(path)
    return written


def draw(figure: Figure) -> "Drawing":
    return _chart(figure) if isinstance(figure, Chart) else _gallery(figure)


def _chart(chart: Chart) -> "Drawing":
    columns = min(2 if len(chart.panels) <= 4 else 4, len(chart.panels))
    rows = -(-len(chart.panels) // columns)
    drawing = blank_figure(3.4 * columns, 2.6 * rows + 0.4)
    lines: dict[str, Artist] = {}
    for place, panel in enumerate(chart.panels, 1):
        axes = drawing.add_subplot(rows, columns, place)
        _panel(axes, panel)
        handles, names = axes.get_legend_handles_labels()
        lines |= dict(zip(names, handles, strict=True))
    if len(lines) > 1:
        drawing.legend(
            list(lines.values()), list(lines), loc="outside lower center", ncols=4, frameon=False, fontsize=8
        )
    return drawing


def _panel(axes: "Axes", panel: Panel) -> None:
    for series in panel.series:
        _series(axes, series)
    _names(axes, panel)
    axes.set_title(panel.title.replace("$", r"\$"), fontsize=9)
    axes.set_xlabel(panel.x_label, fontsize=8)
    axes.set_ylabel(panel.y_label, fontsize=8)
    axes.tick_params(labelsize=7)
    if panel.log_x:
        axes.set_xscale("log")
    if panel.ticks:
        axes.set_xticks([value for value, _ in panel.ticks], [words for _, words in panel.ticks])
    axes.spines[["top", "right"]].set_visible(False)


def _series(axes: "Axes", series: Series) -> None:
    colour = _COLOURS[series.colour % len(_COLOURS)]
    xs, ys = [point.x for point in series.points], [point.y for point in series.points]
    axes.plot(
        xs,
        ys,
        color=colour,
        label=series.name.replace("$", r"\$"),
        linestyle=("--" if series.dashed else "-") if series.joined else "none",
        marker="o" if series.has_dots else "none",
        markersize=3.5,
        linewidth=1.3,
    )
    known = [(point.x, *point.interval) for point in series.points if point.interval is not None]
    if series.has_band:
        places, lows, highs = zip(*known, strict=True)
        axes.fill_between(places, lows, highs, color=colour, alpha=0.15, linewidth=0)
    else:
        for place, low, high in known:
            axes.plot([place, place], [low, high], color=colour, alpha=0.5, linewidth=1.5)


def _names(axes: "Axes", panel: Panel) -> None:
    """Names beside points, placed as on the page: in a frame of _FRAME units, _UNIT of them a printer's point."""
    points = [point for series in panel.series for point in series.points]
    x = Axis(*span([point.x for point in points]), 0, _FRAME[0])
    y = Axis(*span([value for point in points for value in (point.y, *(point.interval or ()))]), _FRAME[1], 0)
    named = [(point, x(point.x), y(point.y)) for series in panel.series if series.labelled for point in series.points]
    dots = [(x(point.x), y(point.y)) for point in points]
    placed = place_labels([(across, down, point.name) for point, across, down in named], dots, (0, 0, *_FRAME))
    for point, across, down in named:
        left, base, name = placed.pop(next(i for i, one in enumerate(placed) if one[2] == point.name))
        shift = ((left - across) / _UNIT, (down - base) / _UNIT)
        axes.annotate(name.replace("$", r"\$"), (point.x, point.y), shift, textcoords="offset points", fontsize=6)


def _gallery(gallery: Gallery) -> "Drawing":
    columns = min(6, len(gallery.pictures)) if gallery.scale == "kept" else min(4, len(gallery.pictures))
    rows = -(-len(gallery.pictures) // columns)
    drawing = blank_figure(
        (1.9 if gallery.scale == "kept" else 2.8) * columns, (2.1 if gallery.scale == "kept" else 2.7) * rows
    )
    for place, picture in enumerate(gallery.pictures, 1):
        _picture(drawing.add_subplot(rows, columns, place), picture, gallery, drawing)
    return drawing


def _picture(axes: "Axes", picture: Picture, gallery: Gallery, drawing: "Drawing") -> None:
    if gallery.scale == "kept":
        axes.imshow(picture.array, cmap="Blues", vmin=0, vmax=1.3, interpolation="nearest")
    else:
        low, high = heat_range(picture.array)
        shown = axes.imshow(picture.array, cmap="viridis", vmin=low, vmax=high, interpolation="nearest")
        drawing.colorbar(shown, ax=axes, shrink=0.8).ax.tick_params(labelsize=6)
    axes.set_title(picture.title.replace("$", r"\$"), fontsize=8)
    axes.set_xticks([])
    axes.set_yticks([])
