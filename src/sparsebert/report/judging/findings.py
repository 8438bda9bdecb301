"""Findings: each claim of the paper with our effect, its interval, and a verdict by a stated test."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from sparsebert.files import write_json
from sparsebert.report.judging.claim import Claim, Comparison
from sparsebert.report.judging.claims import CLAIMS
from sparsebert.report.judging.claims_in_words import IN_WORDS
from sparsebert.report.judging.endpoints import STS, deciding
from sparsebert.report.judging.margins import OF_UNIT
from sparsebert.report.judging.statistics import LEVEL, MIN_SEEDS, Estimate, estimate, holm
from sparsebert.studies.results import Study

Verdict = Literal["reproduced", "not reproduced", "not enough evidence"]
_TESTS = {
    "superiority": "paired over tasks (or heads) and seeds; 95 % interval above 0",
    "non-inferiority": "paired over tasks and seeds; 95 % interval above minus the margin",
}
_PROTOCOLS = {"mlm": "", "distill": "protocol distill; "}


@dataclass(frozen=True)
class PartFinding:
    """One comparison within a claim."""

    name: str
    effect: float
    low: float
    high: float
    unit: str
    seeds: int
    pairs: int
    p: float
    decides: bool  # False: another endpoint beside the one that decides


@dataclass(frozen=True)
class Finding:
    """A row of the findings table; of several parts that decide the weakest speaks for the claim."""

    claim: str
    number: int
    statement: str
    effect: float | None
    low: float | None
    high: float | None
    unit: str | None
    seeds: int
    test: str
    margin: float | None
    verdict: Verdict
    by_score: Verdict | None  # what the scores of tasks alone would say, where the loss decides
    runs: tuple[str, ...]
    kind: str
    p: float | None  # after Holm, times the number of looks
    weakest: str | None
    parts: tuple[PartFinding, ...]
    note: str
    by_sts: Verdict | None = None  # what STS alone would say, where the distance of embeddings decides


@dataclass(frozen=True)
class _Judged:
    """A claim and its comparisons: those that decide, and scores beside a loss, which do not."""

    claim: Claim
    parts: tuple[tuple[Comparison, Estimate], ...]
    beside: tuple[tuple[Comparison, Estimate], ...] = ()
    left: int = 0  # runs to be made before it is judged: who looks again and again finds what they hope for

    @property
    def weakest(self) -> tuple[Comparison, Estimate] | None:
        return max(self.parts, key=lambda one: (one[1].p, -one[1].effect), default=None)

    @property
    def p(self) -> float:
        """All parts must hold: the largest p is a valid one for that, with no correction."""
        return 1.0 if self.left else max((found.p for _, found in self.parts), default=1.0)

    @property
    def p_against(self) -> float:
        """One part that fails is enough, so the smallest p pays for the number of parts."""
        smallest = min((found.p_against for _, found in self.parts), default=1.0)
        return 1.0 if self.left else min(1.0, len(self.parts) * smallest)


def judge(study: Study) -> list[Finding]:
    """Every claim, with Holm's correction within the claims and within what is said in words, and for the looks."""
    findings = []
    for family in (CLAIMS, IN_WORDS):
        judged = [_estimate(claim, study) for claim in family]
        for_, against = holm([one.p for one in judged]), holm([one.p_against for one in judged])
        for one, *corrected in zip(judged, for_, against, strict=True):
            p, p_against = (min(1.0, study.looks * value) for value in corrected)
            findings.append(_finding(one, p, p_against, study))
    return findings


def write_findings(findings: list[Finding], path: Path) -> None:
    """by_sts is said where there is such a verdict: findings of the protocol mlm have none."""
    fields = [asdict(finding) for finding in findings]
    write_json(path, [{k: v for k, v in one.items() if k != "by_sts" or v is not None} for one in fields])


def _estimate(claim: Claim, study: Study) -> _Judged:
    found = []
    for part in claim.comparisons(study):
        if part.sample:
            bound, ceiling = part.bounds(claim.kind)
            found.append((part, estimate(part.sample.values, bound=bound, ceiling=ceiling, resamples=study.resamples)))
    # The primary endpoint is one that every condition has: docs/decisions/statistics.md.
    unit = deciding(study).unit
    has_primary = any(part.unit == unit for part, _ in found)
    chosen = tuple(one for one in found if one[0].unit == unit or not has_primary)
    beside = tuple(one for one in found if one not in chosen)
    has_scores = any(part.unit == "points" for part, _ in chosen)
    return _Judged(claim, chosen, beside, study.left(claim.study, scores=has_scores))


def _finding(judged: _Judged, p: float, p_against: float, study: Study) -> Finding:
    claim, weakest = judged.claim, judged.weakest
    verdict, note = _verdict(judged, p, p_against, study)
    part, found = weakest or (None, None)
    everything = (*judged.parts, *judged.beside)
    return Finding(
        claim=claim.name,
        number=claim.number,
        statement=claim.statement,
        effect=None if found is None else found.effect,
        low=None if found is None else found.low,
        high=None if found is None else found.high,
        unit=None if part is None else part.unit,
        seeds=min((each.seeds for _, each in judged.parts), default=0),
        test=f"{_PROTOCOLS[study.protocol]}{_TESTS[claim.kind]}, {_corrected(study.looks)} below 0.05",
        margin=OF_UNIT[part.unit] if part else None,
        verdict=verdict,
        by_score=_verdict_by("points", judged, study),
        runs=tuple(dict.fromkeys(id_ for each, _ in everything for id_ in each.sample.runs)),
        kind=claim.kind,
        p=p if judged.parts else None,
        weakest=None if part is None else part.name,
        parts=tuple(
            PartFinding(
                each.name, f.effect, f.low, f.high, each.unit, f.seeds, f.pairs, f.p, number < len(judged.parts)
            )
            for number, (each, f) in enumerate(everything)
        ),
        note=note,
        by_sts=_verdict_by(STS.unit, judged, study),
    )


def _verdict_by(unit: str, judged: _Judged, study: Study) -> Verdict | None:
    """What one endpoint that does not decide would say by itself."""
    parts = tuple(one for one in judged.beside if one[0].unit == unit)
    aside = _Judged(judged.claim, parts, left=study.left(judged.claim.study, scores=unit == "points"))
    return _verdict(aside, aside.p, aside.p_against, study)[0] if parts else None


def _corrected(looks: int) -> str:
    return "Holm-adjusted p" + (f" times {looks}, for as many looks," if looks > 1 else "")


def _verdict(judged: _Judged, p: float, p_against: float, study: Study) -> tuple[Verdict, str]:
    if not judged.parts:
        return "not enough evidence", "no finished runs bear on it"
    if not study.is_evidence:
        return "not enough evidence", "smoke runs are not evidence"
    if judged.left:
        return "not enough evidence", f"so far; runs of its study still to be made: {judged.left}"
    seeds, kind = min(found.seeds for _, found in judged.parts), judged.claim.kind
    if seeds < MIN_SEEDS:
        return "not enough evidence", f"{seeds} seed; at least {MIN_SEEDS} are needed"
    is_above = all(found.low > part.bounds(kind)[0] for part, found in judged.parts)
    if is_above and p < 1 - LEVEL:
        return "reproduced", ""
    failed = [part.name for part, found in judged.parts if found.high < part.bounds(kind)[1]]
    if p_against < 1 - LEVEL and failed:
        return "not reproduced", f"fails in: {', '.join(failed[:3])}{' and others' if len(failed) > 3 else ''}"
    if is_above:
        return "not enough evidence", f"on its own it would hold; corrected for the others p is {p:.2g}"
    if failed:
        return (
            "not enough evidence",
            f"on its own {failed[0]} would fail; corrected for the others p is {p_against:.2g}",
        )
    return "not enough evidence", "the interval leaves both open"
