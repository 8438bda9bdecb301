"""The findings table: a claim a row, its interval drawn, its verdict by a stated test, its parts behind a fold."""

from sparsebert.report.judging.findings import Finding, PartFinding
from sparsebert.report.rendering.figures.svg import Link
from sparsebert.report.rendering.markup import Markup, join, tag

_WIDTH, _HEIGHT = 150, 26


def findings_html(findings: list[Finding], link: Link) -> Markup:
    titles = ("#", "Claim of the paper", "Effect", "Interval", "Seeds", "Verdict")
    head = tag("tr", *(_heading(title, place) for place, title in enumerate(titles)))
    bodies = [tag("tbody", *(_row(finding, link) for finding in findings))]
    return tag(
        "div",
        tag(
            "div",
            tag("h3", "Each claim, judged"),
            tag("button", "CSV", type="button", class_="csv", data_name="findings", aria_label="Findings as CSV"),
            class_="table-head",
        ),
        tag("div", tag("table", tag("thead", head), *bodies, id="table-findings"), class_="scroll", tabindex="0"),
        class_="table-box findings",
    )


def _heading(title: str, column: int) -> Markup:
    button = tag("button", title, type="button", data_column=column, class_="sort")
    return tag("th", button, scope="col", aria_sort="none")


def _row(finding: Finding, link: Link) -> Markup:
    return tag(
        "tr",
        tag("td", str(finding.number), data_value=finding.number, class_="number"),
        tag("td", tag("span", finding.statement, class_="statement"), _parts(finding), data_value=finding.statement),
        _effect(finding, link),
        tag("td", _interval(finding), _interval_words(finding), data_value=finding.low, class_="interval"),
        tag("td", str(finding.seeds), data_value=finding.seeds, class_="number"),
        tag(
            "td",
            tag("span", finding.verdict, class_=f"verdict {finding.verdict.replace(' ', '-')}"),
            tag("span", finding.note, class_="why") if finding.note else None,
            tag("span", f"by scores alone: {finding.by_score}", class_="why") if finding.by_score else None,
            data_value=finding.verdict,
        ),
    )


def _effect(finding: Finding, link: Link) -> Markup:
    if finding.effect is None:
        return tag("td", "–", data_value="")  # noqa: RUF001
    words = signed(finding.effect, finding.unit)
    where = link(finding.runs)
    number = tag("a", words, href=where, data_runs=" ".join(finding.runs), class_="ours") if where else words
    return tag(
        "td",
        number,
        tag("span", "of P" if finding.unit == "P" else finding.unit, class_="unit"),
        data_value=f"{finding.effect:.6g}",
    )


def signed(value: float, unit: str | None) -> str:
    """With two or three decimals, and one digit of what these would show as zero."""
    digits = 2 if unit in ("points", "points a decade") else 3
    is_tiny = value != 0 and abs(value) < 0.5 * 10**-digits
    return (f"{value:+.1g}" if is_tiny else f"{value:+.{digits}f}").replace("-", "\N{MINUS SIGN}")


def _interval_words(finding: Finding) -> Markup | None:
    if finding.low is None or finding.high is None:
        return None
    words = f"{signed(finding.low, finding.unit)} to {signed(finding.high, finding.unit)}"
    return tag("span", words, class_="range")


def _interval(finding: Finding) -> Markup | None:
    """The interval against zero and the bound it is judged by."""
    if finding.low is None or finding.high is None or finding.effect is None:
        return None
    margin = finding.margin or 0.0
    reach = 1.15 * max(abs(finding.low), abs(finding.high), margin) or 1.0
    middle = _HEIGHT / 2

    def place(value: float) -> float:
        return round(_WIDTH / 2 * (1 + value / reach), 1)

    bound = tag("line", x1=place(-margin), x2=place(-margin), y1=3, y2=_HEIGHT - 3, class_="margin")
    return tag(
        "svg",
        tag("line", x1=place(0), x2=place(0), y1=1, y2=_HEIGHT - 1, class_="zero"),
        bound if finding.kind == "non-inferiority" else None,
        tag("line", x1=place(finding.low), x2=place(finding.high), y1=middle, y2=middle, class_="reach"),
        tag("circle", cx=place(finding.effect), cy=middle, r=4, class_="mark"),
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        class_=f"forest {finding.verdict.replace(' ', '-')}",
        aria_hidden="true",
    )


def _parts(finding: Finding) -> Markup | None:
    if not finding.parts:
        return None
    margin = f" The margin is {finding.margin:g} ({finding.unit})." if finding.margin is not None else ""
    p = "" if finding.p is None else f" Corrected p = {finding.p:.3g}."
    deciding = sum(part.decides for part in finding.parts)
    weakest = f" The weakest of {deciding} speaks for the claim." if deciding > 1 else ""
    beside = " Held-out loss decides; scores of tasks stand beside it." if deciding < len(finding.parts) else ""
    rows = [_part(part) for part in finding.parts]
    titles = ("Comparison", "Effect", "Interval", "Pairs", "p")
    table = tag("table", tag("thead", tag("tr", *(tag("th", title) for title in titles))), tag("tbody", *rows))
    return tag(
        "details",
        tag("summary", f"{finding.kind}, {len(finding.parts)} comparison{'s' if len(finding.parts) > 1 else ''}"),
        tag("p", join(finding.test, ".", margin, p, weakest, beside), class_="caption"),
        tag("div", table, class_="scroll"),
    )


def _part(part: PartFinding) -> Markup:
    low, high = signed(part.low, part.unit), signed(part.high, part.unit)
    return tag(
        "tr",
        tag("th", part.name, scope="row"),
        tag("td", f"{signed(part.effect, part.unit)} {part.unit}"),
        tag("td", f"{low} to {high}"),
        tag("td", str(part.pairs)),
        tag("td", f"{part.p:.2g}"),
    )
