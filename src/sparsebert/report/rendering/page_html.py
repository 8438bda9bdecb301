"""The page: one file that holds its style, script and data, and fetches nothing."""

import hashlib
import json
import re
from base64 import b64encode
from importlib.resources import files
from pathlib import Path
from typing import Any

from sparsebert.report.judging.findings import Finding
from sparsebert.report.rendering.explorer import explorer_data
from sparsebert.report.rendering.figure_html import figure_html
from sparsebert.report.rendering.figures import all_figures
from sparsebert.report.rendering.figures.svg import Link
from sparsebert.report.rendering.findings_html import findings_html
from sparsebert.report.rendering.loss_table import losses_table
from sparsebert.report.rendering.markup import Markup, join, relative_link, tag
from sparsebert.report.rendering.run_tables import facts, runs_table, settings_table, stages_table
from sparsebert.report.rendering.score_tables import (
    ablation_table,
    glue_table,
    importance_table,
    patterns_table,
    swag_table,
)
from sparsebert.report.rendering.table_html import table_html
from sparsebert.studies.results import Study

_LONG = 36  # letters of a fact that needs more than one column
_SCRIPTS = ("tables.js", "runs.js", "explorer.js")


def page_html(study: Study, findings: list[Finding], page: Path) -> str:
    """Everything, with links relative to where the page will lie."""
    link = _linker(study, page)
    style, script = asset("report.css"), "\n".join(asset(name) for name in _SCRIPTS)
    parts = {
        "title": join(f"SparseBERT, study {study.name}, {study.scale} scale"),
        "policy": Markup(policy(style, script)),
        "style": Markup(style),
        "script": Markup(script),
        "run_data": Markup(embedded(_runs(study, link))),
        "explorer_data": Markup(embedded(explorer_data(study))),
        "banner": _banner(study),
        "facts": _facts(study),
        "verdicts": _verdicts(findings),
        **_sections(study, findings, link),
    }
    # One pass over the template: a part that holds what looks like a placeholder is not filled in again.
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], asset("page.html"))


def asset(name: str) -> str:
    return (files("sparsebert.report.rendering") / "page" / name).read_text(encoding="utf-8")


def policy(style: str, script: str) -> str:
    """Nothing but this very style and script, and images that are inside the page."""
    return (
        "default-src 'none'; img-src data:; "
        f"style-src '{_hash(style)}'; script-src '{_hash(script)}'; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return "sha256-" + b64encode(hashlib.sha256(text.encode()).digest()).decode()


def embedded(value: Any) -> str:
    """JSON that cannot end the element it stands in."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _linker(study: Study, page: Path) -> Link:
    places = {run.id: study.place_of(run) for run in study.runs}

    def link(runs: tuple[str, ...]) -> str | None:
        known = [places[id_] for id_ in runs if id_ in places]
        return relative_link(known[0], page) if known else None

    return link


def _runs(study: Study, link: Link) -> dict[str, Any]:
    return {
        run.id: [run.label, run.seed, link((run.id,)), run.score, run.loss]
        for run in study.runs
        if run.result is not None
    }


def _banner(study: Study) -> Markup:
    if study.is_evidence:
        return Markup("")
    words = "These runs are a few steps long. They show that every part works; the numbers mean nothing."
    return tag("p", tag("strong", "Not evidence."), " ", words, class_="banner", role="note")


def _facts(study: Study) -> Markup:
    given = (
        tag("div", tag("dt", name), tag("dd", value), class_="long" if len(value) > _LONG else None)
        for name, value in facts(study)
    )
    return tag("dl", *given, class_="facts")


def _verdicts(findings: list[Finding]) -> Markup:
    """How many claims came out which way."""
    kinds = ("reproduced", "not reproduced", "not enough evidence")
    counts = {kind: sum(finding.verdict == kind for finding in findings) for kind in kinds}
    tiles = (
        tag(
            "a", tag("strong", str(count)), tag("span", kind), class_=f"tile {kind.replace(' ', '-')}", href="#findings"
        )
        for kind, count in counts.items()
    )
    return tag("div", *tiles, class_="tiles")


def _sections(study: Study, findings: list[Finding], link: Link) -> dict[str, Markup]:
    figures = {figure.key: figure_html(figure, link) for figure in all_figures(study)}
    return {
        "findings": findings_html(findings, link),
        "importance": join(figures["heat"], figures["profile"], table_html(importance_table(study), link, "Position")),
        "losses": table_html(losses_table(study), link, "Pattern"),
        "diagonal": join(table_html(glue_table(study), link, "Model"), table_html(swag_table(study), link, "Model")),
        "pruning": join(figures["pruning"], figures["pruning-loss"]),
        "patterns": join(
            figures["handmade"],
            table_html(patterns_table(study), link, "Pattern"),
            figures["frontier"],
            figures["patterns"],
            figures["penalty"],
            figures["learned-unstructured"],
            figures["learned-structured"],
        ),
        "ablation": table_html(ablation_table(study), link, "Pattern"),
        "stages": figures["stages"],
        "settings": join(
            table_html(stages_table(study), link, "Stage"), table_html(settings_table(study), link, "Setting")
        ),
        "runs": table_html(runs_table(study), link, "Run"),
    }
