"""The page: one file that holds its style, script and data, and fetches nothing; templates/ say what it looks like."""

import hashlib
import json
import os
from base64 import b64encode
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from sparsebert.importance.figures import heat_range
from sparsebert.report.judging.findings import Finding
from sparsebert.report.rendering.contents import all_figures, all_tables
from sparsebert.report.rendering.explorer import explorer_data
from sparsebert.report.rendering.figures.axes import Axis
from sparsebert.report.rendering.figures.images import data_uri
from sparsebert.report.rendering.figures.layout import lay_out, told_point
from sparsebert.report.rendering.run_tables import facts
from sparsebert.report.rendering.tables import raw, said, signed
from sparsebert.studies.results import Study

Link = Callable[[tuple[str, ...]], str | None]  # from runs to a relative link

_SCRIPTS = ("tables.js", "runs.js", "explorer.js")


def page_html(study: Study, findings: list[Finding], page: Path) -> str:
    """Everything, with links relative to where the page will lie."""
    link = _linker(study, page)
    style, script = asset("report.css"), "\n".join(asset(name) for name in _SCRIPTS)
    return (
        environment(link)
        .get_template("page.html")
        .render(
            study=study,
            facts=list(facts(study)),
            findings=findings,
            figures={figure.key: figure for figure in all_figures(study)},
            tables={table.key: table for table in all_tables(study)},
            policy=policy(style, script),
            style=Markup(style),
            script=Markup(script),
            run_data=embedded(_runs(study, link)),
            explorer_data=embedded(explorer_data(study)),
        )
    )


def environment(link: Link) -> Environment:
    """Templates in which text is escaped, and a name that does not exist is an error."""
    made = Environment(
        loader=PackageLoader(__package__),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for function in (data_uri, heat_range, interval_axis, lay_out, raw, said, signed, told_point):
        made.globals[function.__name__] = function
    made.globals["link"] = link
    return made


def asset(name: str) -> str:
    return (Path(__file__).parent / "templates" / name).read_text(encoding="utf-8")


def interval_axis(finding: Finding) -> Axis:
    """Zero in the middle, and room for the interval and the margin."""
    reach = 1.15 * max(abs(finding.low or 0.0), abs(finding.high or 0.0), finding.margin or 0.0) or 1.0
    return Axis(-reach, reach, 0, 150)


def policy(style: str, script: str) -> str:
    """Nothing but this very style and script, and images that are inside the page."""
    return (
        "default-src 'none'; img-src data:; "
        f"style-src '{_hash(style)}'; script-src '{_hash(script)}'; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return "sha256-" + b64encode(hashlib.sha256(text.encode()).digest()).decode()


def embedded(value: Any) -> Markup:
    """JSON that cannot end the element it stands in."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def _linker(study: Study, page: Path) -> Link:
    places = {run.id: study.place_of(run) for run in study.runs}

    @cache
    def link_to(id_: str) -> str:
        return relative_link(places[id_], page)

    def link(runs: tuple[str, ...]) -> str | None:
        known = next((id_ for id_ in runs if id_ in places), None)
        return None if known is None else link_to(known)

    return link


def relative_link(target: Path, page: Path) -> str:
    """From the page to a file or folder; quoted, and never something that a browser takes for a scheme."""
    way = os.path.relpath(target.resolve(), page.resolve().parent)
    return f"./{quote(Path(way).as_posix())}{'' if target.is_file() else '/'}"


def _runs(study: Study, link: Link) -> dict[str, Any]:
    return {
        run.id: [run.label, run.seed, link((run.id,)), run.score, run.loss]
        for run in study.runs
        if run.result is not None
    }
