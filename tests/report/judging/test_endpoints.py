"""Each protocol is judged by its own endpoints, with as many resamples as its study says."""

from dataclasses import replace
from typing import Any

from sparsebert.report.judging.findings import judge
from sparsebert.report.judging.statistics import estimate
from sparsebert.report.rendering.loss_table import losses_table
from sparsebert.report.rendering.markdown import findings_table
from sparsebert.studies.results import Study, StudyRun
from tests.report.synthetic import World, make_study


def distilled(study: Study) -> Study:
    """The same effects, as a dense teacher would have seen them: a nat is a distance of 1, a point one of STS."""

    def turned(run: StudyRun) -> StudyRun:
        if run.stage != "adapt" or run.result is None or run.loss is None:
            return run
        changed: dict[str, Any] = {"embedding_distance": run.loss - 1.5}
        return replace(run, result={**run.result, "metrics": changed, "sts": {"mean": 80 + (1.9 - run.loss) / 0.03}})

    base = {**study.base, "sizes": {"protocol": "distill", "resamples": 99_999, "looks": 2}}
    return replace(study, runs=tuple(map(turned, study.runs)), base=base)


def test_under_distill_the_distance_decides_and_sts_stands_beside_it() -> None:
    study = distilled(make_study(World(seeds=5, tasks=("rte", "cola"))))
    found = {one.number: one for one in judge(study)}
    for number in (4, 5, 6, 7, 8, 9):
        assert found[number].unit == "distance"
        assert found[number].test.startswith("protocol distill; ")
        assert {part.unit for part in found[number].parts if part.decides} == {"distance"}
        assert "STS points" in {part.unit for part in found[number].parts}
        assert found[number].by_sts is not None
    assert found[6].verdict == found[6].by_sts == found[6].by_score == "reproduced"
    assert "by STS alone" in next(iter(findings_table(found.values())))


def test_under_mlm_nothing_speaks_of_sts() -> None:
    found = judge(make_study(World(tasks=("rte",))))
    assert all(one.by_sts is None and "protocol" not in one.test for one in found)
    assert "by STS alone" not in next(iter(findings_table(found)))


def test_more_resamples_allow_a_smaller_p() -> None:
    pairs = {("loss", seed): 1.0 + 1e-6 * seed for seed in range(5)}
    few, many = (estimate(pairs, resamples=number).p for number in (4_999, 99_999))
    assert few == 2 / 5_000
    assert many == 2 / 100_000


def test_the_table_of_conditions_has_the_endpoints_of_the_protocol() -> None:
    study = make_study(World(tasks=("rte",)))
    assert losses_table(study).columns == ("Sparsity %", "MLM loss", "More than dense", "Seeds")
    table = losses_table(distilled(study))
    assert table.columns == ("Sparsity %", "Distance", "STS", "STS against dense", "Seeds")
    dense = next(row for row in table.rows if row.label == "dense")
    assert dense.cells[3].value is None
    assert all(isinstance(cell.value, float) for row in table.rows if row != dense for cell in row.cells)
