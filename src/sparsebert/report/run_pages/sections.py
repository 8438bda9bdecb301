"""What a run's page is made of: sections of figures, tables, an explorer and code; and the page from them."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sparsebert.report.rendering.document import document
from sparsebert.report.rendering.explorer import within_budget
from sparsebert.report.rendering.figures.shapes import Chart, Gallery
from sparsebert.report.rendering.tables import Table


@dataclass(frozen=True)
class Listing:
    """A table, and what its rows are."""

    table: Table
    first: str  # title of the column of labels


@dataclass(frozen=True)
class Code:
    code: str


Part = Chart | Gallery | Listing | Code


@dataclass(frozen=True)
class Section:
    key: str
    link: str  # its name in the bar of links
    title: str
    lead: str
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True)
class Tile:
    """A figure in large type."""

    value: str
    words: str


@dataclass(frozen=True)
class RunPage:
    kicker: str
    heading: str
    lead: str
    tiles: tuple[Tile, ...]
    facts: tuple[tuple[str, str], ...]
    sections: tuple[Section, ...]
    sources: tuple[dict[str, Any], ...]  # of the explorer; none: there is no explorer
    command: str  # that made it

    @property
    def explorer_after(self) -> str:
        """The section that the explorer shows more of."""
        keys = [section.key for section in self.sections]
        return next((key for key in ("kept", "importance") if key in keys), keys[-1])

    def html(self) -> str:
        shown = within_budget(self.sources)
        scripts = ("tables.js", "sections.js", *["explorer.js"] * bool(shown["sources"]))
        data = {"explorer-data": shown} if shown["sources"] else {}
        return document("run.html", lambda runs: None, scripts, data, page=self, facts=self.facts)


def facts_of(about: dict[str, Any], names: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Settings of a run by what a reader calls them; those that it has not are left out."""
    given = {**about["settings"], "seed": about["fit"]["seed"], **about["environment"]["versions"]}
    return tuple((title, str(given[name])) for name, title in names if given.get(name) is not None)
