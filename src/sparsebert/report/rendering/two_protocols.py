"""Two protocols side by side: what each says of a claim, in plain words, and scores of both beside the paper's."""

from collections.abc import Iterator, Sequence

from sparsebert.report.judging.endpoints import deciding
from sparsebert.report.judging.findings import Finding
from sparsebert.report.rendering.markdown import plain
from sparsebert.report.rendering.score_tables import glue_table, patterns_table
from sparsebert.report.rendering.tables import Cell, Table, said, signed
from sparsebert.studies.results import Study

Judged = tuple[Study, Sequence[Finding]]
_OPEN = "not enough evidence"
_SCORES = (
    "Means over seeds, in points, with half the 95 % interval: mlm / distill, and the paper's number in brackets. An "
    "average is over the tasks that were scored, which the protocols do not share."
)


def two_protocols(mlm: Judged, distill: Judged) -> str:
    """The page, as Markdown."""
    both = (mlm, distill)
    lines = ["# Two protocols side by side", "", *_about(both), "", "## Claims", "", *_claims(both), ""]
    lines += [*_decided(both), "", "## Scores", ""]
    lines += [_SCORES, ""]
    for make in (glue_table, patterns_table):
        lines += [*_scores(make(mlm[0]), make(distill[0])), ""]
    return "\n".join(lines)


def _about(both: Sequence[Judged]) -> Iterator[str]:
    yield "Made by `make docs` from the records of both studies."
    yield ""
    for study, _ in both:
        done = sum(run.result is not None for run in study.runs)
        evidence = "" if study.is_evidence else " Smoke runs are not evidence."
        yield (
            f"- **{study.protocol}**, {plain(study.scale)} scale: {done} of {len(study.runs)} runs. "
            f"{deciding(study).title} decides.{evidence}"
        )


def _claims(both: Sequence[Judged]) -> Iterator[str]:
    yield "| # | claim | " + " | ".join(f"{study.protocol} | effect" for study, _ in both) + " |"
    yield "|---" * (2 + 2 * len(both)) + "|"
    for ones in zip(*(findings for _, findings in both), strict=True):
        cells = [f"{one.verdict} | {_effect(one)}" for one in ones]
        yield f"| {ones[0].number} | {plain(ones[0].statement)} | {' | '.join(cells)} |"


def _effect(one: Finding) -> str:
    if one.effect is None or one.low is None or one.high is None:
        return ""
    effect, low, high = (signed(value, one.unit) for value in (one.effect, one.low, one.high))
    return plain(f"{effect} ({low} to {high}) {one.unit}, {one.seeds} seed{'' if one.seeds == 1 else 's'}")


def _decided(both: Sequence[Judged]) -> Iterator[str]:
    """How many of the nine claims either protocol settles, and where the two disagree."""
    pairs = [ones for ones in zip(*(findings for _, findings in both), strict=True) if ones[0].number <= 9]
    decided = [ones for ones in pairs if any(one.verdict != _OPEN for one in ones)]
    yield f"Of the nine claims {len(decided)} are decided under one protocol or the other."
    against = [ones for ones in decided if {one.verdict for one in ones} == {"reproduced", "not reproduced"}]
    if against:
        yield f"The two contradict each other on {', '.join(str(ones[0].number) for ones in against)}."
    still = [str(ones[0].number) for ones in pairs if ones not in decided]
    if still:
        yield f"Still open: {', '.join(still)}."


def _scores(mlm: Table, distill: Table) -> Iterator[str]:
    """Every row that either study filled: each column as mlm, distill and paper, where there is one."""
    rows = {(row.group, row.label): row.cells for row in mlm.rows}
    other = {(row.group, row.label): row.cells for row in distill.rows}
    yield f"### {mlm.title}"
    yield ""
    yield f"| | {' | '.join(plain(column) for column in mlm.columns)} |"
    yield "|---" * (len(mlm.columns) + 1) + "|"
    empty = (Cell(),) * len(mlm.columns)
    for key in dict.fromkeys((*rows, *other)):
        ones, others = rows.get(key, empty), other.get(key, empty)
        if any(cell.value is not None for cell in (*ones, *others)):
            cells = (_both(one, two) for one, two in zip(ones, others, strict=True))
            yield f"| {plain(key[1])} | {' | '.join(cells)} |"


def _both(one: Cell, two: Cell) -> str:
    paper = one.paper if one.paper is not None else two.paper
    ours = f"{_with_interval(one)} / {_with_interval(two)}"
    return ours if paper is None else f"{ours} ({plain(said(paper, one.digits))})"


def _with_interval(cell: Cell) -> str:
    return plain(said(cell.value, cell.digits)) + ("" if cell.half_width is None else f" ±{cell.half_width}")
