from collections.abc import Callable
from pathlib import Path

import pytest

from sparsebert.files import write_json
from sparsebert.studies.cost import Estimator, estimator, run_seconds
from sparsebert.studies.graph import Graph
from sparsebert.studies.jobs import StudyPaths

GraphOf = Callable[..., Graph]


def test_a_pretraining_run_costs_in_proportion_to_its_steps(graph_of: GraphOf) -> None:
    ten, twenty, thirty = (next(iter(graph_of("importance", base_steps=steps).runs.values())) for steps in (10, 20, 30))
    estimate = Estimator(graph_of("importance").sources, 1e9)
    more = estimate.flops(twenty) - estimate.flops(ten)  # without the evaluation, which every run has once
    assert more > 0
    assert estimate.flops(thirty) - estimate.flops(twenty) == pytest.approx(more)
    assert estimate.seconds(thirty) == pytest.approx(estimate.overhead + estimate.flops(thirty) / 1e9)


def test_swag_reads_four_sequences_a_row_and_pruning_costs_next_to_nothing(graph_of: GraphOf) -> None:
    graph = graph_of("all", finetune={"length": 8, "max_rows": 16, "max_dev_rows": 16, "num_epochs": 1.0})
    estimate = Estimator(graph.sources, 1e9)
    flops = {r.condition.task: estimate.flops(r) for r in graph.runs.values() if r.condition.family == "dense"}
    assert flops["swag"] == pytest.approx(4 * flops["rte"])
    pruned = next(run for run in graph.runs.values() if run.stage == "prune")
    assert estimate.flops(pruned) == 0
    assert estimate.seconds(pruned) < 1


def test_rows_are_the_official_ones_unless_fewer_are_asked_for(graph_of: GraphOf) -> None:
    flops = []
    for rows in ({}, {"max_rows": 100, "max_dev_rows": 5000}):
        graph = graph_of("diagonal", finetune={"length": 8, "num_epochs": 1.0, **rows})
        run = next(run for run in graph.runs.values() if run.condition.task == "rte")
        flops.append(Estimator(graph.sources, 1e9).flops(run))
    assert flops[1] / flops[0] == pytest.approx((100 + 277 / 3) / (2490 + 277 / 3))


def test_finished_runs_tell_the_speed(graph_of: GraphOf, tmp_path: Path) -> None:
    graph, paths = graph_of("importance"), StudyPaths(tmp_path, "m", None, None)
    base = next(iter(graph.runs.values()))
    plain = Estimator(graph.sources, 1.0)
    write_json(paths.folder(base.id) / "timing.json", {"run_seconds": 100 + plain.overhead})
    chosen = estimator(graph, paths, None)
    assert chosen.flops_per_second == pytest.approx(plain.flops(base) / 100)
    assert chosen.seconds(base) == pytest.approx(100 + plain.overhead)


def test_a_given_speed_is_used_and_without_any_one_is_measured(graph_of: GraphOf, tmp_path: Path) -> None:
    graph, paths = graph_of("importance"), StudyPaths(tmp_path, "m", None, None)
    assert estimator(graph, paths, 5e13).flops_per_second == 5e13
    assert estimator(graph, paths, None).flops_per_second > 0


def test_the_cost_of_the_paper_is_known_without_any_data(graph_of: GraphOf) -> None:
    graph = graph_of("all", "paper")
    cost = Estimator(graph.sources, 1e14).total(list(graph.runs.values()))
    assert cost.runs == len(graph.runs)
    assert cost.flops > 0
    assert cost.hours == pytest.approx(cost.seconds / 3600)


def test_a_run_without_timing_took_an_unknown_time(tmp_path: Path) -> None:
    assert run_seconds(tmp_path) == 0.0
    write_json(tmp_path / "timing.json", ["odd"])
    assert run_seconds(tmp_path) == 0.0
