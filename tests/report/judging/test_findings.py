"""Verdicts where the truth is known."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from sparsebert.report.judging.claims import CLAIMS
from sparsebert.report.judging.findings import judge, write_findings
from sparsebert.report.judging.margins import OF_UNIT
from sparsebert.studies.results import Study, StudyRun, load_study
from tests.report.synthetic import NOTHING, Effects, World, make_study, write_study

QUIET = {"noise": 0.05, "seed_noise": 0.02}
NOT_FROM_FILES = (4, 5, 6, 7, 8, 9, 11, 13, 14)  # claims that need no importance run


def verdicts(study: Study) -> dict[int, str]:
    return {finding.number: finding.verdict for finding in judge(study)}


def test_every_planted_effect_is_found(tmp_path: Path) -> None:
    write_study(World(seeds=4, **QUIET), tmp_path / "study")
    found = judge(load_study(tmp_path / "study"))
    assert {finding.verdict for finding in found} == {"reproduced"}, [
        (finding.number, finding.note) for finding in found if finding.verdict != "reproduced"
    ]
    assert [finding.number for finding in found] == list(range(1, 16))


def test_planted_sizes_come_out(study: Study) -> None:
    found = {finding.number: finding for finding in judge(study)}
    for number, planted in ((1, 0.04), (4, 0.2), (6, 3.0), (9, 2.0), (11, 2.0), (13, 6.0)):
        finding = found[number]
        assert any(part.low <= planted <= part.high for part in finding.parts), (number, finding)
        assert finding.runs


def test_effects_the_other_way_are_not_reproduced() -> None:
    against = Effects(no_diagonal=-4, random_drop=3, by_p=-3, learned=-2, globals_=-3, ablation=-4, one_stage=-3,
                      penalty=-2, redundancy=-8)  # fmt: skip
    found = verdicts(make_study(World(effects=against, seeds=4, **QUIET)))
    assert {number: found[number] for number in NOT_FROM_FILES} == dict.fromkeys(NOT_FROM_FILES, "not reproduced")


def test_noise_that_drowns_everything_is_not_enough_evidence() -> None:
    found = verdicts(make_study(World(seeds=2, noise=20.0, seed_noise=20.0)))
    assert {found[number] for number in NOT_FROM_FILES if number != 11} == {"not enough evidence"}


@pytest.mark.parametrize(("stage", "judged_by_loss"), [("adapt", "not enough evidence"), ("finetune", "reproduced")])
def test_a_claim_is_judged_when_every_run_that_decides_is_there(stage: str, judged_by_loss: str) -> None:
    study = make_study(World(seeds=4, **QUIET))
    missing = next(run for run in study.runs if run.stage == stage and run.studies == ("stages",))
    runs = tuple(replace(run, result=None) if run is missing else run for run in study.runs)
    before, after = (judge(replace(study, runs=runs_)) for runs_ in (study.runs, runs))
    changed = {one.number: two for one, two in zip(before, after, strict=True) if one.verdict != two.verdict}
    assert {number: finding.verdict for number, finding in changed.items()} == (
        {} if judged_by_loss == "reproduced" else {9: "not enough evidence"}
    )
    nine = after[8]
    assert nine.by_score == "not enough evidence"
    assert nine.effect is not None
    assert ("still to be made: 1" in nine.note) == (stage == "adapt")


def test_each_look_makes_every_verdict_harder() -> None:
    study = make_study(World(seeds=4, **QUIET))
    once, often = (judge(replace(study, base={"sizes": {"looks": looks}})) for looks in (1, 1000))
    for one, other in zip(once, often, strict=True):
        assert other.p == (None if one.p is None else min(1.0, 1000 * one.p))
    assert {finding.verdict for finding in once} > {"reproduced"}
    assert {finding.verdict for finding in often} == {"not enough evidence"}


def test_one_seed_is_never_enough() -> None:
    assert set(verdicts(make_study(World(seeds=1, **QUIET))).values()) == {"not enough evidence"}


def test_smoke_is_never_evidence() -> None:
    found = judge(make_study(World(scale="smoke", seeds=4, **QUIET)))
    assert {finding.verdict for finding in found} == {"not enough evidence"}
    assert any("smoke" in finding.note for finding in found)


def test_an_empty_study_has_findings_without_numbers() -> None:
    study = make_study(World(seeds=1))
    nothing = replace(study, runs=tuple(replace(run, result=None) for run in study.runs))
    for finding in judge(nothing):
        assert (finding.effect, finding.low, finding.high, finding.seeds) == (None, None, None, 0)
        assert finding.verdict == "not enough evidence"


def test_non_inferiority_allows_what_the_margin_allows() -> None:
    study = make_study(World(effects=Effects(no_diagonal=-0.3, random_drop=-0.3), seeds=4, **QUIET))
    assert verdicts(study)[4] == "reproduced"
    assert verdicts(study)[5] == "reproduced"


def test_the_loss_decides_and_scores_stand_beside_it() -> None:
    """Scores that say the contrary of the losses do not change a verdict, but are told; without losses they decide."""
    study = make_study(World(seeds=4, **QUIET))
    turned = tuple(_with_score(run, 200.0 - run.score) if run.score is not None else run for run in study.runs)
    pruning = {finding.number: finding for finding in judge(replace(study, runs=turned))}[6]
    assert (pruning.verdict, pruning.by_score) == ("reproduced", "not reproduced")
    assert {part.unit for part in pruning.parts if part.decides} == {"nats"}
    assert {part.unit for part in pruning.parts if not part.decides} == {"points"}
    scored = tuple(run for run in turned if run.stage != "adapt")
    pruning = {finding.number: finding for finding in judge(replace(study, runs=scored))}[6]
    assert (pruning.verdict, pruning.by_score) == ("not reproduced", None)


def _with_score(run: StudyRun, score: float) -> StudyRun:
    return replace(run, result={**(run.result or {}), "score": score})


def test_verdicts_are_rarely_wrong_where_there_is_nothing() -> None:
    """The null of claims 4 to 9 at its edge: any `reproduced` is false. benchmarks/false_findings.py counts more."""
    wrong = 0
    for draw in range(12):
        found = verdicts(make_study(World(effects=NOTHING, tasks=("qnli", "mrpc"), seeds=3, draw=draw)))
        wrong += any(found[number] == "reproduced" for number in range(4, 10))
    assert wrong <= 1


def test_findings_json_has_the_fields_others_read(study: Study, tmp_path: Path) -> None:
    write_findings(judge(study), tmp_path / "findings.json")
    found = json.loads((tmp_path / "findings.json").read_text())
    fields = {
        "claim",
        "number",
        "statement",
        "effect",
        "low",
        "high",
        "unit",
        "seeds",
        "test",
        "margin",
        "verdict",
        "runs",
    }
    assert all(fields <= set(entry) for entry in found)
    ids = {run.id for run in study.runs}
    assert all(set(entry["runs"]) <= ids for entry in found)


def test_margins_are_those_that_were_written_down() -> None:
    text = (Path(__file__).resolve().parents[3] / "docs" / "decisions" / "margins.md").read_text()
    written = [float(value) for value in re.findall(r"^\| [^|]+ \| ([\d.]+) \|", text, re.MULTILINE)]
    assert written == list(OF_UNIT.values())


def test_the_claims_are_of_the_kinds_that_were_written_down() -> None:
    kinds = {claim.number: claim.kind for claim in CLAIMS}
    assert [number for number, kind in kinds.items() if kind == "non-inferiority"] == [4, 5, 8]
