"""write_report(): a study folder to a page or a Markdown file, findings.json beside it, figures where wanted."""

from pathlib import Path
from typing import Literal

from sparsebert.errors import FileError
from sparsebert.files import write_atomic
from sparsebert.report.judging.findings import Finding, judge, write_findings
from sparsebert.report.rendering.contents import all_figures
from sparsebert.report.rendering.figures.plots import save_figures
from sparsebert.report.rendering.markdown import markdown
from sparsebert.report.rendering.page import page_html
from sparsebert.studies.results import Study, load_study

Format = Literal["html", "md"]
_MOST_BYTES = 8 * 2**20  # of the page


def write_report(
    folder: Path,
    out: Path,
    *,
    form: Format = "html",
    figures: Path | None = None,
    findings: Path | None = None,
    records: Path | None = None,
) -> list[Finding]:
    """Read the study, judge the claims, and write everything; returns the findings.

    records: the records that the study was unpacked from, for the page to link to.
    """
    study = load_study(folder, records)
    judged = judge(study)
    text = page_html(study, judged, out) if form == "html" else _markdown(study, judged, out)
    data = text.encode(errors="replace")  # half a surrogate pair in some name must not cost the page
    if len(data) > _MOST_BYTES:
        raise FileError(f"the page of {folder} would have {len(data):,} bytes; more than {_MOST_BYTES:,} open slowly")
    write_atomic(out, data)
    write_findings(judged, findings or out.parent / "findings.json")
    if figures is not None:
        save_figures(all_figures(study), figures)
    return judged


def _markdown(study: Study, findings: list[Finding], out: Path) -> str:
    """Figures go to a folder that is named after the file."""
    drawn = [figure for figure in all_figures(study) if not figure.is_empty]
    folder = out.with_name(f"{out.stem}_figures")
    save_figures(drawn, folder, ("svg",))
    return markdown(study, findings, [(figure, f"{folder.name}/{figure.key}.svg") for figure in drawn])
