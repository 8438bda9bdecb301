"""The page of a study: tables, figures, findings and the explorer; templates/ say what it looks like."""

import os
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sparsebert.report.judging.endpoints import deciding
from sparsebert.report.judging.findings import Finding
from sparsebert.report.rendering.contents import all_figures, all_tables
from sparsebert.report.rendering.document import Link, document
from sparsebert.report.rendering.explorer import explorer_data
from sparsebert.report.rendering.run_tables import facts
from sparsebert.studies.results import Study

_SCRIPTS = ("tables.js", "runs.js", "sections.js", "explorer.js")


def page_html(study: Study, findings: list[Finding], page: Path) -> str:
    """Everything, with links relative to where the page will lie."""
    link = _linker(study, page)
    return document(
        "page.html",
        link,
        _SCRIPTS,
        {"run-data": _runs(study, link), "explorer-data": explorer_data(study)},
        study=study,
        facts=list(facts(study)),
        findings=findings,
        figures={figure.key: figure for figure in all_figures(study)},
        tables={table.key: table for table in all_tables(study)},
    )


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
    endpoint = deciding(study)
    return {
        run.id: [run.label, run.seed, link((run.id,)), run.score, endpoint.of(run), endpoint.words]
        for run in study.runs
        if run.result is not None
    }
