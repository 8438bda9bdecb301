"""Charts as inline SVG: colours come from the page's style, so they follow light, dark and print."""

from collections.abc import Callable

from sparsebert.report.rendering.figures.axes import Scale, log_span, log_ticks, span, ticks, told
from sparsebert.report.rendering.figures.labels import place_labels
from sparsebert.report.rendering.figures.shapes import Chart, Panel, Point, Series
from sparsebert.report.rendering.markup import Markup, join, tag

_LARGE, _SMALL = (440, 270), (272, 205)  # one to four panels are drawn large, more of them small
_RIGHT, _TOP, _BOTTOM = 12, 12, 38
_LETTER = 5.7  # of a tick
_MANY = 24  # points beyond which a line goes without dots

Link = Callable[[tuple[str, ...]], str | None]  # from runs to a relative link


def chart_html(chart: Chart, link: Link) -> Markup:
    """A legend and every panel, each its own drawing so that they flow with the width of the page."""
    names: dict[str, Series] = {}
    for panel in chart.panels:
        for series in panel.series:
            names.setdefault(series.name, series)
    legend = [tag("li", _swatch(series), name) for name, series in names.items()] if len(names) > 1 else []
    large = len(chart.panels) <= 4
    panels = [_panel_html(panel, link, _LARGE if large else _SMALL) for panel in chart.panels]
    return join(
        tag("ul", *legend, class_="legend") if legend else None,
        tag("div", *panels, class_=f"panels {'large' if large else 'small'}"),
    )


def _swatch(series: Series) -> Markup:
    line = tag("line", x1=0, x2=22, y1=6, y2=6, class_=_line_class(series)) if series.joined else None
    dot = None if series.dashed else tag("circle", cx=11, cy=6, r=3.5, class_=f"dot c{series.colour}")
    return tag("svg", line, dot, viewBox="0 0 22 12", class_="swatch", aria_hidden="true")


def _line_class(series: Series) -> str:
    return f"line c{series.colour}{' dashed' if series.dashed else ''}"


def _panel_html(panel: Panel, link: Link, size: tuple[int, int]) -> Markup:
    title = tag("figcaption", panel.title) if panel.title else None
    return tag("figure", title, panel_svg(panel, link, size), class_="panel")


def panel_svg(panel: Panel, link: Link, size: tuple[int, int] = _LARGE) -> Markup:
    """One pair of axes with its series."""
    x, y = _scales(panel, size)
    body: list[Markup | None] = [_grid(panel, x, y), *(_band(series, x, y) for series in panel.series)]
    body += [_line(series, x, y) for series in panel.series]
    body += [_dots(series, x, y, panel, link) for series in panel.series]
    body.append(_names(panel, x, y))
    said = f"{panel.title}: {panel.y_label} against {panel.x_label}; {', '.join(one.name for one in panel.series)}"
    return tag("svg", *body, viewBox=f"0 0 {size[0]} {size[1]}", class_="chart", role="img", aria_label=said)


def _scales(panel: Panel, size: tuple[int, int]) -> tuple[Scale, Scale]:
    width, height = size
    points = [point for series in panel.series for point in series.points]
    xs = [point.x for point in points]
    ys = [value for point in points for value in (point.y, *point.each, *(point.interval or ()))]
    low, high = log_span(xs) if panel.log_x else span(xs)
    if panel.ticks:
        low, high = -0.6, len(panel.ticks) - 0.4
    y = Scale(*span(ys), height - _BOTTOM, _TOP)
    left = 24 + _LETTER * max(3, *(len(told(value)) for value in _y_ticks(y)))
    return Scale(low, high, left, width - _RIGHT, panel.log_x), y


def _y_ticks(y: Scale) -> list[float]:
    return ticks(y.low, y.high, 4)


def _grid(panel: Panel, x: Scale, y: Scale) -> Markup:
    left, right, bottom = x.start, x.end, y.start
    parts = []
    for value in _y_ticks(y):
        parts.append(tag("line", x1=left, x2=right, y1=y(value), y2=y(value), class_="rule"))
        parts.append(tag("text", told(value), x=left - 6, y=y(value) + 3.5, class_="tick end"))
    across = panel.ticks or tuple((value, told(value, panel.log_x)) for value in _x_ticks(x))
    for value, words in across:
        parts.append(tag("line", x1=x(value), x2=x(value), y1=bottom, y2=bottom + 4, class_="rule"))
        parts.append(tag("text", words, x=x(value), y=bottom + 16, class_="tick middle"))
    parts.append(tag("line", x1=left, x2=right, y1=bottom, y2=bottom, class_="axis"))
    middle = (left + right) / 2
    parts.append(tag("text", panel.x_label, x=middle, y=bottom + _BOTTOM - 5, class_="axis-name middle"))
    turned = f"rotate(-90 10 {(_TOP + bottom) / 2})"
    parts.append(tag("text", panel.y_label, x=10, y=(_TOP + bottom) / 2, transform=turned, class_="axis-name middle"))
    return join(*parts)


def _x_ticks(x: Scale) -> list[float]:
    return log_ticks(x.low, x.high) if x.log else ticks(x.low, x.high, 5)


def _band(series: Series, x: Scale, y: Scale) -> Markup:
    """Intervals as a band along a line, as bars at single points."""
    known = [(point, point.interval) for point in series.points if point.interval is not None]
    if series.joined and len(known) > 1:
        upper = [f"{x(point.x)},{y(high)}" for point, (_, high) in known]
        lower = [f"{x(point.x)},{y(low)}" for point, (low, _) in reversed(known)]
        return tag("polygon", points=" ".join(upper + lower), class_=f"band c{series.colour}")
    bars = (
        tag("line", x1=x(point.x), x2=x(point.x), y1=y(low), y2=y(high), class_=f"bar c{series.colour}")
        for point, (low, high) in known
    )
    return join(*bars)


def _line(series: Series, x: Scale, y: Scale) -> Markup | None:
    if not series.joined or len(series.points) < 2:
        return None
    places = " ".join(f"{x(point.x)},{y(point.y)}" for point in series.points)
    return tag("polyline", points=places, class_=_line_class(series))


def _dots(series: Series, x: Scale, y: Scale, panel: Panel, link: Link) -> Markup | None:
    if series.dashed or (series.joined and len(series.points) > _MANY):
        return None
    parts: list[Markup] = []
    for point in series.points:
        if len(point.each) > 1:
            parts += [
                tag("circle", cx=x(point.x), cy=y(value), r=1.7, class_=f"seed c{series.colour}")
                for value in point.each
            ]
    for point in series.points:
        said = tag("title", told_point(series, point, panel))
        dot = tag("circle", said, cx=x(point.x), cy=y(point.y), r=3.6, class_=f"dot c{series.colour}")
        where = link(point.runs)
        parts.append(tag("a", dot, href=where, data_runs=" ".join(point.runs)) if where else dot)
    return join(*parts)


def told_point(series: Series, point: Point, panel: Panel) -> str:
    """What a reader is told who points at it."""
    place = dict(panel.ticks).get(point.x, f"{point.x:.4g}")
    interval = "" if point.interval is None else f", 95 % interval {point.interval[0]:.4g} to {point.interval[1]:.4g}"
    seeds = f", {len(point.each)} seeds" if len(point.each) > 1 else ""
    return f"{point.name or series.name} at {place}: {point.y:.4g}{interval}{seeds}"


def _names(panel: Panel, x: Scale, y: Scale) -> Markup:
    """Names beside the points of labelled series, where they do not run into each other."""
    dots = [(x(point.x), y(point.y)) for series in panel.series for point in series.points]
    named = [(x(p.x), y(p.y), p.name) for series in panel.series if series.labelled for p in series.points]
    placed = place_labels(named, dots, (x.start, _TOP, x.end + 10, y.start))
    return join(*(tag("text", name, x=left, y=base, class_="name") for left, base, name in placed))
