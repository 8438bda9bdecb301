"""`sparsebert report`: a study folder as one page, with the findings and the figures."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from sparsebert.cli import options


class Format(StrEnum):
    html = "html"
    md = "md"


def report(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="A folder written by `sparsebert study`, or the file of its --record.")
    ],
    out: Annotated[
        Path | None, typer.Option(help="The page to write.", show_default="report.html, or report.md")
    ] = None,
    format_: Annotated[
        Format, typer.Option("--format", help="One HTML page, or Markdown with SVG figures.")
    ] = Format.html,
    figures: Annotated[Path | None, typer.Option(help="Also write every figure here, as SVG and PDF.")] = None,
    findings: Annotated[
        Path | None, typer.Option(help="Where findings.json goes; beside the page unless given.")
    ] = None,
) -> None:
    """Turn a study into tables, figures and findings: one page that works offline.

    Examples:

    sparsebert report results --out results/report.html

    sparsebert report results --format md --out results/report.md --figures figures

    sparsebert report docs/results/runs.jsonl.zst --out published.html
    """
    from collections import Counter

    from sparsebert.report.writing import write_report
    from sparsebert.studies.record_store import unpacked

    out = Path(f"report.{format_.value}") if out is None else out
    options.require_file(out)
    options.require_file(findings, "--findings")
    options.require_folder(figures, "--figures")
    with unpacked(folder) as study:
        records = None if study == folder else folder
        judged = write_report(study, out, form=format_.value, figures=figures, findings=findings, records=records)
    counts = Counter(finding.verdict for finding in judged)
    typer.echo(f"{out}: {', '.join(f'{count} {verdict}' for verdict, count in counts.most_common())}")
