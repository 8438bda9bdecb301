"""study.json, what counts as finished, and results taken from elsewhere."""

from collections.abc import Callable
from pathlib import Path

import pytest

from sparsebert.errors import ConfigError, FileError, StudyError
from sparsebert.files import canonical_json, read_json, write_json
from sparsebert.studies import folder
from sparsebert.studies.graph import Graph
from sparsebert.studies.jobs import StudyPaths
from sparsebert.studies.runs import Run

GraphOf = Callable[..., Graph]


def _finish(graph: Graph, out: Path, *, weights: bool = True) -> None:
    """Every run with the files it would leave."""
    for run in graph.runs.values():
        into = out / "runs" / run.id
        into.mkdir(parents=True)
        (into / "result.json").write_text(canonical_json(run.result_fields()))
        names = ["pattern.safetensors", "gate.safetensors"]
        if weights and run.stage != "finetune":
            names.append("model/model.safetensors")
        for name in names:
            (into / name).parent.mkdir(exist_ok=True)
            (into / name).write_bytes(b"")


def _stages(runs: list[Run]) -> set[str]:
    return {run.stage for run in runs}


def test_study_json_is_the_same_bytes_every_time(graph_of: GraphOf, tmp_path: Path) -> None:
    written = []
    for name in ("a", "b"):
        graph = graph_of("all")
        folder.write_study(tmp_path / name, folder.describe(graph, ["importance"]))
        written.append((tmp_path / name / "study.json").read_bytes())
    assert written[0] == written[1]


def test_study_json_says_of_each_run_what_a_report_needs(graph_of: GraphOf) -> None:
    graph = graph_of("all")
    entry = folder.describe(graph, ["importance"])["runs"][-1]
    assert sorted(entry) == ["condition", "depends", "folder", "id", "label", "stage", "studies"]
    assert entry["folder"] == f"runs/{entry['id']}"
    assert {"family", "pattern", "diagonal", "kind", "penalty", "sparsity_target", "method", "task", "seed"} <= set(
        entry["condition"]
    )


def test_a_folder_keeps_the_studies_it_had(graph_of: GraphOf, tmp_path: Path) -> None:
    folder.write_study(tmp_path, folder.describe(graph_of("patterns"), ["patterns"]))
    assert folder.names_with_earlier("ablation", tmp_path) == ["patterns", "ablation"]
    assert folder.names_with_earlier("ablation", tmp_path / "new") == ["ablation"]


def test_another_scale_in_the_same_folder_is_refused_and_more_seeds_are_not(graph_of: GraphOf, tmp_path: Path) -> None:
    folder.write_study(tmp_path, folder.describe(graph_of("patterns"), ["patterns"]))
    folder.write_study(tmp_path, folder.describe(graph_of("patterns", seeds=2), ["patterns"]))
    with pytest.raises(ConfigError, match=r"scale is 'smoke' in .* but 'laptop' now"):
        folder.write_study(tmp_path, folder.describe(graph_of("patterns", "laptop"), ["patterns"]))


def test_a_foreign_study_json_is_refused(tmp_path: Path) -> None:
    write_json(tmp_path / "study.json", ["something else"])
    with pytest.raises(FileError, match="does not describe a study"):
        folder.names_with_earlier("all", tmp_path)


def test_two_studies_cannot_run_in_one_folder_at_once(tmp_path: Path) -> None:
    with (
        folder.claimed(tmp_path),
        pytest.raises(StudyError, match="another process runs a study"),
        folder.claimed(tmp_path),
    ):
        pass


def test_nothing_finished_is_made_again(graph_of: GraphOf, tmp_path: Path) -> None:
    graph, paths = graph_of("all"), StudyPaths(tmp_path, "m", None, None)
    assert len(folder.runs_to_make(graph, paths)) == len(graph.runs)
    _finish(graph, tmp_path)
    assert folder.runs_to_make(graph, paths) == []


def test_results_without_weights_are_enough_where_nobody_needs_the_weights(graph_of: GraphOf, tmp_path: Path) -> None:
    graph, paths = graph_of("all"), StudyPaths(tmp_path, "m", None, None)
    _finish(graph, tmp_path, weights=False)
    assert folder.runs_to_make(graph, paths) == []
    # One task of one pattern is missing: only the chain up to its weights is made again.
    lost = next(r for r in graph.runs.values() if r.stage == "finetune" and r.condition.pattern == "star")
    (paths.folder(lost.id) / "result.json").unlink()
    again = folder.runs_to_make(graph, paths)
    assert [run.stage for run in again] == ["base", "adapt", "finetune"]
    folder.make_ready(graph, again, paths)
    assert not any(paths.is_finished(run.id) for run in again)


def test_a_lost_pruned_pattern_needs_its_importance_only_if_p_is_lost_too(graph_of: GraphOf, tmp_path: Path) -> None:
    graph, paths = graph_of("pruning"), StudyPaths(tmp_path, "m", None, None)
    _finish(graph, tmp_path)
    lost = next(r for r in graph.runs.values() if r.stage == "prune" and r.condition.method == "p")
    (paths.folder(lost.id) / "result.json").unlink()
    assert _stages(folder.runs_to_make(graph, paths)) == {"prune"}
    (paths.folder(lost.depends[0]) / "gate.safetensors").unlink()
    assert _stages(folder.runs_to_make(graph, paths)) == {"prune", "importance"}


def test_results_of_another_folder_are_taken_over_small_files_only(graph_of: GraphOf, tmp_path: Path) -> None:
    graph = graph_of("importance")
    _finish(graph, tmp_path / "theirs")
    paths = StudyPaths(tmp_path / "ours", "m", None, None, tmp_path / "theirs")
    assert folder.take_finished(graph.runs.values(), paths) == len(graph.runs)
    assert folder.runs_to_make(graph, paths) == []
    base = next(iter(graph.runs))
    assert read_json(paths.folder(base) / "result.json")["id"] == base
    assert not (paths.folder(base) / "model").exists()
    assert paths.file(base, "model/model.safetensors").is_relative_to(tmp_path / "theirs")
    assert folder.take_finished(graph.runs.values(), paths) == 0


@pytest.mark.parametrize("scale", ["smoke", "paper"])
def test_exactly_the_weights_that_some_run_starts_from_are_kept(graph_of: GraphOf, tmp_path: Path, scale: str) -> None:
    graph = graph_of("all", scale)
    _finish(graph, tmp_path)
    started_from = {run.config.get("start") for run in graph.runs.values()}
    for run in graph.runs.values():
        made = tmp_path / "runs" / run.id
        (made / "model").mkdir(exist_ok=True)
        folder.tidy(run, made)
        # An adapted model may yet be fine-tuned on more tasks, and a whole pre-training cost too much to throw away.
        is_kept = run.id in started_from or run.stage in ("base", "adapt", "prune") or scale == "paper"
        assert (made / "model").exists() == (is_kept and run.stage != "finetune"), run.stage
        assert (made / "gate.safetensors").exists()
