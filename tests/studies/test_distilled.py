"""The protocol distill: what its graph holds, and the whole smoke study, made for real."""

import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sparsebert.errors import ConfigError, StudyError
from sparsebert.files import read_json
from sparsebert.patterns import Pattern
from sparsebert.progress import Lines
from sparsebert.report.rendering.two_protocols import two_protocols
from sparsebert.report.writing import write_report
from sparsebert.studies.graph import Graph
from sparsebert.studies.grids import HANDMADE
from sparsebert.studies.results import load_study
from sparsebert.studies.runs import PUBLISHED, Run
from sparsebert.studies.scales import find_scale
from sparsebert.studies.study import StudyConfig, planned, run_study
from tests.studies.conftest import distilled_config

GraphOf = Callable[..., Graph]


def _runs(graph: Graph, stage: str, **condition: Any) -> list[Run]:
    return [
        run
        for run in graph.runs.values()
        if run.stage == stage and all(getattr(run.condition, name) == value for name, value in condition.items())
    ]


@pytest.fixture
def laptop(graph_of: GraphOf) -> Graph:
    return graph_of("all", "laptop", protocol="distill")


def test_every_condition_starts_from_the_published_model_and_has_as_many_steps(laptop: Graph) -> None:
    assert not _runs(laptop, "base")
    adapted = _runs(laptop, "adapt")
    assert {run.config["start"] for run in adapted} == {None}
    steps = Counter((run.condition.family == "published", run.config["steps"]) for run in adapted)
    assert set(steps) == {(True, 0), (False, laptop.scale.adapt_steps)}
    assert {run.seed for run in adapted} == set(range(5))


def test_patterns_are_learned_by_distillation_at_the_sparsities_that_were_asked_for(laptop: Graph) -> None:
    assert {run.config["objective"] for run in _runs(laptop, "search")} == {"distill"}
    for kind in ("structured", "unstructured"):
        targets = {run.condition.sparsity_target for run in _runs(laptop, "search", kind=kind, penalty=None, seed=0)}
        assert {0.5, 0.9, 0.704, 0.727, 0.898, 0.961} <= targets
        assert len(targets) >= len(HANDMADE) + 2


def test_a_taught_run_depends_on_the_published_model_of_its_task_and_seed(laptop: Graph) -> None:
    taught = _runs(laptop, "finetune", taught=True)
    assert taught
    for run in taught:
        teacher = laptop.runs[run.config["teacher"]]
        assert teacher.id in run.depends
        assert teacher.condition.row == PUBLISHED
        assert (teacher.condition.task, teacher.seed) == (run.condition.task, run.seed)
        assert teacher.config["keeps_model"]


def test_tasks_have_the_seeds_and_conditions_of_the_plan(laptop: Graph) -> None:
    for task, seeds in {"cola": 3, "stsb": 3, "mrpc": 3, "rte": 3, "sst2": 1, "qqp": 1, "mnli": 1, "qnli": 1}.items():
        star = _runs(laptop, "finetune", pattern="star", diagonal=True, task=task, taught=False)
        assert [run.seed for run in star] == list(range(seeds))
    squad = {run.condition.label("adapt") for run in _runs(laptop, "finetune", task="squad1", taught=False)}
    assert squad == {f"{name} squad1" for name in ("published", "dense", "no-diagonal", "star", "DAM_s 90%")}
    # Claim 13 asks for both ends of the pruning curve on two tasks, claim 14 for patterns learned at penalties.
    pruned = {(run.condition.sparsity_target, run.condition.task) for run in _runs(laptop, "finetune", method="p")}
    assert pruned == {(end, task) for end in (0.1, 0.9) for task in ("cola", "rte")}
    learned = _runs(laptop, "finetune", family="learned", kind="structured")
    assert {1e-4, 1e-3, 1e-2, 1e-1} <= {run.condition.penalty for run in learned}


def test_importance_is_learned_from_scratch_and_p_to_prune_by_in_the_model_itself(laptop: Graph) -> None:
    scratch = _runs(laptop, "importance", family="importance", method="soft")
    assert [run.seed for run in scratch] == [0, 1, 2]
    assert {run.config["model"] for run in scratch} == {"scratch:mini"}
    assert all("head_start" not in run.config for run in scratch)
    own = {run.id for run in _runs(laptop, "importance", family="to-prune-by")}
    assert {run.depends[0] for run in _runs(laptop, "prune", method="p")} == own


def test_the_two_protocols_share_no_run_but_patterns_drawn_at_random(graph_of: GraphOf, laptop: Graph) -> None:
    shared = set(graph_of("all", "laptop").runs) & set(laptop.runs)
    assert {laptop.runs[one].condition.method for one in shared} == {"random"}


def test_a_protocol_or_scale_that_there_is_none_of_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no scale 'paper' of protocol distill; expected smoke, laptop"):
        find_scale("paper", "distill")
    with pytest.raises(ConfigError, match="protocol is 'nsp'; expected mlm or distill"):
        StudyConfig("all", tmp_path, protocol="nsp")  # type: ignore[arg-type]


def test_sts_sets_are_refused_where_no_embedding_is_scored(tmp_path: Path) -> None:
    from sparsebert.studies.sources import find_sources

    with pytest.raises(ConfigError, match="protocol mlm scores no embeddings"):
        find_sources(find_scale("smoke"), [], tmp_path, None, None, tmp_path)


# The smoke study, made for real


def _results(study: Path, stage: str) -> Iterator[tuple[Path, dict[str, Any]]]:
    for entry in read_json(study / "study.json")["runs"]:
        if entry["stage"] == stage:
            yield study / entry["folder"], read_json(study / entry["folder"] / "result.json")


@pytest.mark.long
def test_every_adapted_condition_has_its_distance_and_its_sts(distilled_study: Path) -> None:
    seen = 0
    for folder, result in _results(distilled_study, "adapt"):
        assert 0 <= result["metrics"]["embedding_distance"] < 2
        assert set(result["sts"]) == {"STS-B dev", "mean"}
        assert -100 <= result["sts"]["mean"] <= 100
        assert {"score", "task"}.isdisjoint(result)
        if result["condition"]["family"] not in ("dense", "published"):
            assert Pattern.load(folder / "pattern.safetensors").sparsity == result["sparsity"]
        seen += 1
    assert seen > 30


@pytest.mark.long
def test_the_published_model_is_its_own_teacher(distilled_study: Path) -> None:
    (result,) = (one for _, one in _results(distilled_study, "adapt") if one["condition"]["family"] == "published")
    assert result["steps"] == 0
    # The teacher may compute in bfloat16.
    assert result["metrics"]["embedding_distance"] == pytest.approx(0, abs=1e-4)


@pytest.mark.long
def test_only_weights_that_someone_starts_from_or_learns_from_are_kept(distilled_study: Path) -> None:
    described = read_json(distilled_study / "study.json")["runs"]
    for entry in described:
        kept = (distilled_study / entry["folder"] / "model").exists()
        is_teacher = entry["stage"] == "finetune" and entry["condition"]["family"] == "published"
        wanted = entry["stage"] in ("base", "adapt") or (is_teacher and not entry["condition"]["taught"])
        # P to prune by is learned from the base run here.
        assert kept == wanted, entry["label"]


@pytest.mark.long
def test_a_study_that_lost_runs_and_was_stopped_ends_with_the_same_bytes(distilled_study: Path, tmp_path: Path) -> None:
    again = tmp_path / "again"
    shutil.copytree(distilled_study, again)
    study = load_study(distilled_study)
    lost = [
        next(study.finished("search", kind="structured", sparsity_target=0.9)),
        next(study.finished("adapt", family="published")),
        next(study.finished("adapt", pattern="star")),
        next(study.finished("finetune", family="published", task="rte", taught=False)),
        next(study.finished("finetune", pattern="star", task="rte", taught=True)),
    ]
    for run in lost:
        shutil.rmtree(again / "runs" / run.id)
    config = distilled_config(again, distilled_study.parent / "text")
    with planned(distilled_config(again, config.corpus or again, max_hours=1e-9)) as plan:
        assert {run.id for run in plan.missing} == {run.id for run in lost}
        with pytest.raises(StudyError, match="time is up"):
            run_study(plan, Lines("stopped"))
    with planned(config) as plan:
        run_study(plan, Lines("again"))
    for run in study.runs:
        path = Path("runs") / run.id / "result.json"
        assert (again / path).read_bytes() == (distilled_study / path).read_bytes(), run.label


@pytest.mark.long
def test_its_report_and_the_page_of_both_protocols_name_the_protocol(distilled_study: Path, tmp_path: Path) -> None:
    found = write_report(distilled_study, tmp_path / "report.md", form="md")
    text = (tmp_path / "report.md").read_text()
    assert "- Protocol: distill" in text
    assert "### Distance and STS of every condition" in text
    assert "as published, dense, not adapted" in text
    assert "no-diagonal, taught" in text
    assert {one.number for one in found if one.effect is not None} == set(range(1, 16))
    study = load_study(distilled_study)
    assert "Smoke runs are not evidence." in two_protocols((study, found), (study, found))
    write_report(distilled_study, tmp_path / "report.html")
    assert "protocol distill" in (tmp_path / "report.html").read_text()
