"""The report as Markdown: the same tables and findings, figures as files beside it."""

from collections.abc import Iterable, Iterator

from sparsebert.report.judging.findings import Finding
from sparsebert.report.rendering.figures import Figure
from sparsebert.report.rendering.loss_table import losses_table
from sparsebert.report.rendering.run_tables import facts, settings_table, stages_table
from sparsebert.report.rendering.score_tables import (
    ablation_table,
    glue_table,
    importance_table,
    patterns_table,
    swag_table,
)
from sparsebert.report.rendering.tables import Cell, Table, said
from sparsebert.studies.results import Study

_SPECIAL = str.maketrans({character: f"\\{character}" for character in "\\`*_{}[]<>#|!"} | {"\n": " ", "\r": " "})


def markdown(study: Study, findings: list[Finding], figures: Iterable[tuple[Figure, str]]) -> str:
    """figures: each with the address of its drawing, relative to the file."""
    lines = [f"# SparseBERT: {plain(study.name)}, {plain(study.scale)} scale", ""]
    if not study.is_evidence:
        lines += ["**Not evidence.** These runs are a few steps long; the numbers mean nothing.", ""]
    lines += [f"- {name}: {plain(value)}" for name, value in facts(study)]
    lines += ["", "## Findings", "", *_findings(findings), "", "## Tables", ""]
    of_scores = (glue_table, swag_table, patterns_table, ablation_table)
    for table in (make(study) for make in (importance_table, losses_table, *of_scores, settings_table, stages_table)):
        lines += [f"### {table.title}", "", f"{table.caption}{_key(table)}", "", *_table(table), ""]
    lines += ["## Figures", ""]
    for figure, address in figures:
        lines += [f"### {figure.title}", "", f"![{figure.title}]({address})", "", plain(figure.caption), ""]
    return "\n".join(lines)


def plain(text: str) -> str:
    """Text that Markdown leaves as it is."""
    return text.translate(_SPECIAL)


def _key(table: Table) -> str:
    if table.has_paper:
        return " Ours, and the paper's in brackets."
    has_intervals = any(cell.interval is not None for row in table.rows for cell in row.cells)
    return " In brackets: half the 95 % interval over seeds." if has_intervals else ""


def _findings(findings: list[Finding]) -> Iterator[str]:
    yield "| # | claim | effect | 95 % interval | unit | seeds | verdict | by scores alone |"
    yield "|---|---|---|---|---|---|---|---|"
    for one in findings:
        effect = "" if one.effect is None else f"{one.effect:+.3f}"
        interval = "" if one.low is None or one.high is None else f"{one.low:+.3f} to {one.high:+.3f}"
        words = f"{one.verdict} ({one.note})" if one.note else one.verdict
        numbers = (effect, interval, one.unit or "", str(one.seeds))
        cells = (str(one.number), one.statement, *numbers, words, one.by_score or "")
        yield f"| {' | '.join(plain(cell) for cell in cells)} |"


def _table(table: Table) -> Iterator[str]:
    yield f"| | {' | '.join(plain(column) for column in table.columns)} |"
    yield "|---" * (len(table.columns) + 1) + "|"
    group = ""
    for row in table.rows:
        if row.group != group:
            group = row.group
            yield f"| **{plain(group)}** {'| ' * len(table.columns)}|"
        yield f"| {plain(row.label)} | {' | '.join(_cell(cell, table.has_paper) for cell in row.cells)} |"


def _cell(cell: Cell, has_paper: bool) -> str:
    ours = plain(said(cell.value, cell.digits))
    if has_paper:
        return ours if cell.paper is None else f"{ours} ({plain(said(cell.paper, cell.digits))})"
    return ours if cell.half_width is None else f"{ours} (±{cell.half_width})"
