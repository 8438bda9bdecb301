"""The same figures by matplotlib, as SVG or PDF files for papers."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from sparsebert.importance.figures import draw_heat
from sparsebert.patterns.figures import blank_figure, save_figure
from sparsebert.report.rendering.figures.axes import Axis, span
from sparsebert.report.rendering.figures.labels import place_labels
from sparsebert.report.rendering.figures.shapes import Chart, Figure, Gallery, Panel, Series

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
    axes.set_title(_literal(panel.title), fontsize=9)
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
        label=_literal(series.name),
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
    named = sorted(
        (x(point.x), y(point.y), point.name, point.x, point.y)
        for series in panel.series
        if series.labelled
        for point in series.points
    )
    dots = [(x(point.x), y(point.y)) for point in points]
    placed = place_labels([one[:3] for one in named], dots, (0, 0, *_FRAME))
    for (across, down, name, *at), (left, base, _) in zip(named, placed, strict=True):
        shift = ((left - across) / _UNIT, (down - base) / _UNIT)
        axes.annotate(_literal(name), (at[0], at[1]), shift, textcoords="offset points", fontsize=6)


def _literal(text: str) -> str:
    """A dollar sign begins no formula."""
    return text.replace("$", r"\$")


def _gallery(gallery: Gallery) -> "Drawing":
    most, width, height = (6, 1.9, 2.1) if gallery.scale == "kept" else (4, 2.8, 2.7)
    columns = min(most, len(gallery.pictures))
    rows = -(-len(gallery.pictures) // columns)
    drawing = blank_figure(width * columns, height * rows)
    for place, picture in enumerate(gallery.pictures, 1):
        axes = drawing.add_subplot(rows, columns, place)
        if gallery.scale == "kept":
            axes.imshow(picture.array, cmap="Blues", vmin=0, vmax=1.3, interpolation="nearest")
        else:
            draw_heat(axes, picture.array, labelsize=6)
        axes.set_title(_literal(picture.title), fontsize=8)
        axes.set_xticks([])
        axes.set_yticks([])
    return drawing
