"""Figures as parts of the page: a title with the paper's number, the drawing, a caption."""

from sparsebert.importance.figures import heat_range
from sparsebert.report.rendering.figures import Chart, Figure, Gallery, Picture
from sparsebert.report.rendering.figures.images import data_uri
from sparsebert.report.rendering.figures.svg import Link, chart_html
from sparsebert.report.rendering.markup import Markup, join, tag, void


def figure_html(figure: Figure, link: Link) -> Markup:
    number = tag("span", f"Figure {figure.number} of the paper", class_="of-paper") if figure.number else None
    empty = not (figure.panels if isinstance(figure, Chart) else figure.pictures)
    body = tag("p", "No finished run has anything to draw here.", class_="empty") if empty else _body(figure, link)
    return tag(
        "section",
        tag("div", tag("h3", figure.title), number, class_="figure-head"),
        body,
        tag("p", figure.caption, class_="caption"),
        class_="figure-box",
        id=f"figure-{figure.key}",
    )


def _body(figure: Figure, link: Link) -> Markup:
    return chart_html(figure, link) if isinstance(figure, Chart) else _gallery(figure, link)


def _gallery(gallery: Gallery, link: Link) -> Markup:
    size = "large" if len(gallery.pictures) <= 4 else "small"
    return tag("div", *(_picture(one, gallery, link) for one in gallery.pictures), class_=f"gallery {size}")


def _picture(picture: Picture, gallery: Gallery, link: Link) -> Markup:
    image = void("img", src=data_uri(picture.array), alt=picture.title, class_=f"square {gallery.scale}")
    where = link(picture.runs)
    shown = tag("a", image, href=where, data_runs=" ".join(picture.runs)) if where else image
    return tag("figure", shown, tag("figcaption", picture.title, _legend(picture) if gallery.scale == "heat" else None))


def _legend(picture: Picture) -> Markup:
    low, high = heat_range(picture.array)
    return join(tag("span", f"{low:.2f}", tag("span", class_="ramp"), f"{high:.2f}", class_="ramp-box"))
