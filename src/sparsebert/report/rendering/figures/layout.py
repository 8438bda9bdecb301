"""Where everything of a panel goes, in the units of its drawing."""

from dataclasses import dataclass

from sparsebert.report.rendering.figures.axes import Axis, log_span, log_ticks, span, tick_words, ticks
from sparsebert.report.rendering.figures.labels import place_labels
from sparsebert.report.rendering.figures.shapes import Panel, Point, Series

_LARGE, _SMALL = (440, 270), (272, 205)  # one to four panels are drawn large, more of them small
_RIGHT, _TOP, _BOTTOM = 12, 12, 38
_LETTER = 5.7  # of a tick


@dataclass(frozen=True)
class Layout:
    """Sizes, both axes from number to place, their ticks, and the names beside points."""

    width: int
    height: int
    x: Axis
    y: Axis
    x_ticks: tuple[tuple[float, str], ...]
    y_ticks: tuple[tuple[float, str], ...]
    names: list[tuple[float, float, str]]  # left end, baseline, name
    top: int = _TOP
    bottom: int = _BOTTOM

    def line(self, series: Series) -> str:
        """The points of a line, as SVG takes them."""
        return " ".join(f"{self.x(point.x)},{self.y(point.y)}" for point in series.points)

    def band(self, series: Series) -> str:
        """The outline of its intervals: along the upper ends, and back along the lower ones."""
        known = [(self.x(point.x), point.interval) for point in series.points if point.interval is not None]
        upper = [f"{place},{self.y(high)}" for place, (_, high) in known]
        lower = [f"{place},{self.y(low)}" for place, (low, _) in reversed(known)]
        return " ".join(upper + lower)


def lay_out(panel: Panel, *, large: bool) -> Layout:
    width, height = _LARGE if large else _SMALL
    points = [point for series in panel.series for point in series.points]
    xs = [point.x for point in points]
    ys = [value for point in points for value in (point.y, *point.each, *(point.interval or ()))]
    low, high = log_span(xs) if panel.log_x else span(xs)
    if panel.ticks:
        low, high = -0.6, len(panel.ticks) - 0.4
    y = Axis(*span(ys), height - _BOTTOM, _TOP)
    y_ticks = tuple((value, tick_words(value)) for value in ticks(y.low, y.high, 4))
    left = 24 + _LETTER * max(3, *(len(words) for _, words in y_ticks))
    x = Axis(low, high, left, width - _RIGHT, panel.log_x)
    across = log_ticks(low, high) if panel.log_x else ticks(low, high, 5)
    x_ticks = panel.ticks or tuple((value, tick_words(value, panel.log_x)) for value in across)
    named = [(x(p.x), y(p.y), p.name) for series in panel.series if series.labelled for p in series.points]
    dots = [(x(point.x), y(point.y)) for point in points]
    names = place_labels(sorted(named), dots, (x.start, _TOP, x.end + 10, y.start))
    return Layout(width, height, x, y, x_ticks, y_ticks, names)


def told_point(series: Series, point: Point, panel: Panel) -> str:
    """What a reader is told who points at it."""
    place = dict(panel.ticks).get(point.x, f"{point.x:.4g}")
    interval = "" if point.interval is None else f", 95 % interval {point.interval[0]:.4g} to {point.interval[1]:.4g}"
    seeds = f", {len(point.each)} seeds" if len(point.each) > 1 else ""
    return f"{point.name or series.name} at {place}: {point.y:.4g}{interval}{seeds}"
