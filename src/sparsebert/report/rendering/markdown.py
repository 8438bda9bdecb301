"""The report as Markdown: the same tables and findings, figures as files beside it."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from sparsebert.report.judging.findings import Finding
from sparsebert.report.rendering.contents import all_tables
from sparsebert.report.rendering.figures.shapes import Figure
from sparsebert.report.rendering.run_tables import facts
from sparsebert.report.rendering.tables import Cell, Table, said
from sparsebert.studies.results import Study

_SPECIAL = str.maketrans({character: f"\\{character}" for character in "\\`*_{}[]<>#|!"} | {"\n": " ", "\r": " "})


def markdown(study: Study, findings: list[Finding], figures: Iterable[tuple[Figure, str]]) -> str:
    """figures: each with the address of its drawing, relative to the file."""
    lines = [f"# SparseBERT: {plain(study.name)}, {plain(study.scale)} scale, protocol {study.protocol}", ""]
    if not study.is_evidence:
        lines += ["**Not evidence.** These runs are a few steps long; the numbers mean nothing.", ""]
    lines += [f"- {name}: {plain(value)}" for name, value in facts(study)]
    lines += ["", "## Findings", "", *findings_table(findings), "", "## Tables", ""]
    tables = [table for table in all_tables(study) if table.key != "runs"]  # hundreds of them: the page has them all
    for table in tables:
        if not table.is_empty:
            lines += [f"### {table.title}", "", f"{table.caption}{_key(table)}", "", *_table(table), ""]
    if empty := [table.title for table in tables if table.is_empty]:
        lines += [f"Left out, for no finished run bears on them: {'; '.join(empty)}.", ""]
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


_OF_FINDING: dict[str, Callable[[Finding], str]] = {
    "#": lambda one: str(one.number),
    "claim": lambda one: one.statement,
    "effect": lambda one: "" if one.effect is None else f"{one.effect:+.3f}",
    "95 % interval": lambda one: "" if one.low is None or one.high is None else f"{one.low:+.3f} to {one.high:+.3f}",
    "unit": lambda one: one.unit or "",
    "seeds": lambda one: str(one.seeds),
    "verdict": lambda one: f"{one.verdict} ({one.note})" if one.note else one.verdict,
    "by STS alone": lambda one: one.by_sts or "",
    "by scores alone": lambda one: one.by_score or "",
}
_ALWAYS = tuple(column for column in _OF_FINDING if column != "by STS alone")


def findings_table(findings: Iterable[Finding], columns: Sequence[str] | None = None) -> Iterator[str]:
    """A line a finding, below two for the heading."""
    findings = list(findings)
    columns = columns or (tuple(_OF_FINDING) if any(one.by_sts for one in findings) else _ALWAYS)
    yield f"| {' | '.join(columns)} |"
    yield "|---" * len(columns) + "|"
    for one in findings:
        yield f"| {' | '.join(plain(_OF_FINDING[column](one)) for column in columns)} |"


def _table(table: Table) -> Iterator[str]:
    yield f"| | {' | '.join(plain(column) for column in table.columns)} |"
    yield "|---" * (len(table.columns) + 1) + "|"
    for group, rows in table.groups.items():
        if group:
            yield f"| **{plain(group)}** {'| ' * len(table.columns)}|"
        for row in rows:
            yield f"| {plain(row.label)} | {' | '.join(_cell(cell, table.has_paper) for cell in row.cells)} |"


def _cell(cell: Cell, has_paper: bool) -> str:
    ours = plain(said(cell.value, cell.digits))
    if has_paper:
        return ours if cell.paper is None else f"{ours} ({plain(said(cell.paper, cell.digits))})"
    return ours if cell.half_width is None else f"{ours} (±{cell.half_width})"
