"""A comparison shows itself: as text, and in a notebook."""

from html.parser import HTMLParser

from sparsebert.training.comparison import LengthFigures, ModelComparison

MADE = ModelComparison(0.9, 3, [0.1, 0.25], 0.175, 0.9512, [LengthFigures(1, 32, 3, 0.175, 0.9512)], 0.75)


class Cells(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag == "tr":
            self.rows.append([])

    def handle_data(self, data: str) -> None:
        if self.rows:
            self.rows[-1].append(data)


def test_a_notebook_shows_both_tables() -> None:
    html = MADE._repr_html_()
    cells = Cells()
    cells.feed(html)
    assert cells.rows == [
        ["tokens", "rows", "hidden error", "embedding cosine"],
        ["1-32", "3", "0.1750", "0.9512"],
        ["all", "3", "0.1750", "0.9512"],
        ["layer", "1", "2"],
        ["hidden error", "0.1000", "0.2500"],
    ]
    assert "script" not in cells.tags
    assert "90.00% sparse" in html
    assert "same answer of the task head 75.0%" in html
