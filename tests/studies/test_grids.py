"""Which runs the studies are made of."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from sparsebert.errors import ConfigError
from sparsebert.patterns import named
from sparsebert.studies.addresses import FOUNDING
from sparsebert.studies.graph import Graph
from sparsebert.studies.grids import HANDMADE, KINDS, STUDIES, name_of, names_in, phase_of
from sparsebert.studies.runs import Run
from sparsebert.studies.scales import GLUE, OTHERS
from sparsebert.tasks.config import FinetuneConfig
from sparsebert.training.config import FREE_FIELDS, FitConfig

GraphOf = Callable[..., Graph]


def _scored(graph: Graph) -> list[Run]:
    return [run for run in graph.runs.values() if run.stage == "finetune"]


def test_importance_learns_p_and_looks_at_trained_maps(graph_of: GraphOf) -> None:
    stages = Counter(run.stage for run in graph_of("importance").runs.values())
    assert stages == {"base": 1, "importance": 2}


def test_a_study_may_have_more_seeds_than_the_others(graph_of: GraphOf) -> None:
    graph = graph_of("all", seeds=2, study_seeds={"importance": 3}, task_seeds=1)
    seeds = {name: {run.seed for run in graph.runs.values() if name in graph.studies[run.id]} for name in STUDIES}
    assert seeds == {name: {0, 1, 2} if name == "importance" else {0, 1} for name in STUDIES}
    assert {run.seed for run in _scored(graph)} == {0}


def test_seeds_of_a_study_that_is_not_there_are_refused(graph_of: GraphOf) -> None:
    with pytest.raises(ConfigError, match=r"study_seeds names 'diagonals'; expected one of importance"):
        graph_of("all", study_seeds={"diagonals": 3})


def test_diagonal_scores_dense_no_diagonal_and_three_random_drops_on_all_eleven_tasks(graph_of: GraphOf) -> None:
    families = Counter(run.condition.family for run in _scored(graph_of("diagonal")))
    assert families == {"dense": 11, "no-diagonal": 11, "random-drop": 33}


def test_pruning_scores_both_methods_at_nine_sparsities(graph_of: GraphOf) -> None:
    points = Counter(
        (run.condition.method, run.condition.sparsity_target)
        for run in _scored(graph_of("pruning"))
        if run.condition.family == "pruned"
    )
    assert len(points) == 18
    assert set(points.values()) == {len(GLUE)}


def test_patterns_scores_six_handmade_ones_with_and_eight_learned_ones_without_the_diagonal(graph_of: GraphOf) -> None:
    scored = _scored(graph_of("patterns"))
    assert {run.condition.pattern for run in scored if run.condition.family == "handmade"} == set(HANDMADE)
    assert all(run.condition.diagonal for run in scored if run.condition.family == "handmade")
    learned = {(r.condition.kind, r.condition.penalty) for r in scored if r.condition.family == "learned"}
    assert len(learned) == 8
    assert not any(run.condition.diagonal for run in scored if run.condition.family == "learned")


def test_patterns_are_also_learned_at_the_sparsity_of_every_hand_made_one(graph_of: GraphOf) -> None:
    graph = graph_of("patterns")
    adapted = [run for run in graph.runs.values() if run.stage == "adapt" and run.condition.sparsity_target is not None]
    aims = Counter((run.condition.kind, run.condition.sparsity_target) for run in adapted)
    own = (0.689, 0.719, 0.852, 0.871, 0.909, 0.949)  # strided, fixed, Longformer, LogSparse, BigBird, star at 96
    assert aims == {(kind, sparsity): 1 for kind in ("unstructured", "structured") for sparsity in own}
    assert not any(run.condition.sparsity_target for run in _scored(graph))
    assert not any(run.condition.sparsity_target for run in graph_of("patterns", "paper").runs.values())


def test_ablation_has_every_pattern_with_and_without_the_diagonal(graph_of: GraphOf) -> None:
    pairs = Counter((r.condition.pattern, r.condition.penalty) for r in _scored(graph_of("ablation")))
    assert len(pairs) == 8
    assert set(pairs.values()) == {2 * len(GLUE)}


def test_stages_compares_two_kinds_of_search_with_pruning_at_four_sparsities(graph_of: GraphOf) -> None:
    scored = [run for run in _scored(graph_of("stages")) if run.condition.task == "qnli"]
    assert Counter(run.condition.family for run in scored) == {"pruned": 4, "learned": 8}


def test_all_makes_what_two_studies_share_once(graph_of: GraphOf) -> None:
    alone = sum(len(graph_of(name).runs) for name in STUDIES)
    together = graph_of("all")
    shared = [run for run in together.runs if len(together.studies[run]) > 1]
    assert len(together.runs) < alone
    assert shared
    assert sum(len(using) for using in together.studies.values()) == alone


def test_a_run_comes_after_what_it_depends_on(graph_of: GraphOf) -> None:
    seen: set[str] = set()
    for run in graph_of("all").runs.values():
        assert set(run.depends) <= seen
        seen.add(run.id)


def test_more_seeds_add_runs_and_change_none(graph_of: GraphOf) -> None:
    one, two = graph_of("all"), graph_of("all", seeds=2)
    assert set(one.runs) < set(two.runs)


def test_whole_pretraining_starts_every_condition_from_the_model_itself(graph_of: GraphOf) -> None:
    graph = graph_of("all", "paper")
    trained = [run for run in graph.runs.values() if run.stage != "finetune"]
    dense = [run for run in trained if run.condition.family in ("base", "dense")]
    assert [run.stage for run in dense] == ["base"]
    assert all(run.config["start"] is None for run in graph.runs.values() if run.stage in ("search", "importance"))


def test_squad_reads_longer_inputs_where_the_scale_says_so(graph_of: GraphOf) -> None:
    graph = graph_of("diagonal", squad={"length": 256, "stride": 128})
    by_task = {run.condition.task: run.config["settings"] for run in _scored(graph)}
    assert by_task["squad1"]["length"] == 256
    assert by_task["rte"]["length"] == 96


def _finetune_ids(graph: Graph) -> set[str]:
    return {run.id for run in _scored(graph)}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("weight_decay", 0.1),
        ("warmup", 0.2),
        ("learning_rate", 1e-5),
        ("num_epochs", 4.0),
        ("batch_size", 12),
        ("length", 64),
        ("stride", 16),
        ("max_rows", 8),
        ("max_dev_rows", 8),
        ("subset_seed", 1),
        ("skip_bad_rows", True),
        ("anchor", "position"),
    ],
)
def test_every_setting_of_fine_tuning_is_in_its_runs_addresses(graph_of: GraphOf, name: str, value: Any) -> None:
    plain = graph_of("stages")
    changed = graph_of("stages", finetune={**plain.scale.finetune, name: value})
    assert _finetune_ids(plain).isdisjoint(_finetune_ids(changed))
    assert len(set(plain.runs) & set(changed.runs)) == len(plain.runs) - len(_scored(plain))


def test_no_setting_that_determines_a_result_is_left_out_of_a_config(graph_of: GraphOf) -> None:
    loop = FOUNDING[FitConfig] - FREE_FIELDS - {"num_steps", "warmup_steps", "seed"}
    tuning = FOUNDING[FinetuneConfig] - {"data", "model", "seed"}
    for run in graph_of("all").runs.values():
        if run.stage == "finetune":
            assert set(run.config["settings"]) == tuning
            assert None not in [run.config["settings"][name] for name in ("length", "batch_size", "num_epochs")]
        if run.stage != "prune":
            assert set(run.config["loop"]) == loop
        if run.stage in ("base", "importance", "search", "adapt"):
            assert {"steps", "warmup_steps", "learning_rate", "weight_decay", "dropout"} <= set(run.config)


def test_weight_decay_of_pretraining_is_in_its_runs_addresses(graph_of: GraphOf) -> None:
    plain, changed = graph_of("all"), graph_of("all", weight_decay=0.1)
    shared = {plain.runs[one].stage for one in set(plain.runs) & set(changed.runs)}
    assert shared == {"prune"}  # at random: reads no weights


def test_no_run_is_in_an_earlier_phase_than_what_it_depends_on(graph_of: GraphOf) -> None:
    graph = graph_of("all")
    for run in graph.runs.values():
        assert all(phase_of(graph, graph.runs[one]) <= phase_of(graph, run) for one in run.depends)


def test_importance_comes_first_and_scores_come_last(graph_of: GraphOf) -> None:
    graph = graph_of("all")
    words = [phase.words for phase in sorted({phase_of(graph, run) for run in graph.runs.values()})]
    assert words[:3] == ["importance: pre-training", "diagonal: pre-training", "ablation: pre-training"]
    assert words[6:] == [f"{name}: fine-tuning" for name in ("diagonal", "ablation", "pruning", "stages", "patterns")]


def test_names_are_put_in_one_order_and_joined() -> None:
    assert names_in("patterns+importance") == ["importance", "patterns"]
    assert name_of(["patterns", "importance"]) == "importance+patterns"
    assert name_of(names_in("all")) == "all"
    assert set(OTHERS).isdisjoint(GLUE)


def test_an_unknown_study_is_refused() -> None:
    with pytest.raises(ConfigError, match="no study 'everything'"):
        names_in("everything")


def test_only_the_first_seeds_are_scored_where_a_scale_says_so(graph_of: GraphOf) -> None:
    graph = graph_of("diagonal", seeds=3, task_seeds=2)
    assert {run.condition.seed for run in _scored(graph)} == {0, 1}
    assert {run.condition.seed for run in graph.runs.values() if run.stage == "adapt"} == {0, 1, 2}


def test_a_task_may_have_fewer_seeds_in_one_study(graph_of: GraphOf) -> None:
    graph = graph_of("diagonal", seeds=3, task_seeds=2, few_seeds={"diagonal": {"rte": 1}, "pruning": {"mrpc": 0}})
    seeds = {run.condition.task: set() for run in _scored(graph)}
    for run in _scored(graph):
        seeds[run.condition.task].add(run.condition.seed)
    assert seeds == {task: {0} if task == "rte" else {0, 1} for task in seeds}
    assert "mrpc" in seeds


def test_only_some_learned_patterns_are_scored_where_a_scale_says_so(graph_of: GraphOf) -> None:
    graph = graph_of("patterns", task_penalties=(1e-2,), task_own=("star",), pattern_tasks=("rte",))
    learned = [run.condition for run in _scored(graph) if run.condition.family == "learned"]
    star = named("star", graph.scale.length, graph.sources.heads).sparsity
    assert {(one.kind, one.penalty) for one in learned if one.penalty} == {(kind, 1e-2) for kind in KINDS}
    assert {one.sparsity_target for one in learned if not one.penalty} == {round(star, 3)}
    assert len(learned) == 4


def test_only_some_sparsities_are_scored_where_a_scale_says_so(graph_of: GraphOf) -> None:
    graph = graph_of("pruning", task_sparsities=(0.5, 0.9))
    pruned = [run for run in graph.runs.values() if run.condition.family == "pruned"]
    assert {run.condition.sparsity_target for run in pruned if run.stage == "finetune"} == {0.5, 0.9}
    assert len({run.condition.sparsity_target for run in pruned if run.stage == "adapt"}) == 9
