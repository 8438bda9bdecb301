"""Records: finished runs as small files, and a study that takes them over."""

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sparsebert.cli import app
from sparsebert.errors import FileError, RunInterruptedError
from sparsebert.files import read_json, write_json
from sparsebert.patterns import star
from sparsebert.report.writing import write_report
from sparsebert.studies import folder
from sparsebert.studies.graph import Graph
from sparsebert.studies.jobs import Place
from sparsebert.studies.progress import Lines
from sparsebert.studies.records import record_of, recorded_files, restore, unpacked, write_record
from sparsebert.studies.runs import Run
from sparsebert.studies.study import planned, record, run_study
from tests.studies.conftest import small_config

GraphOf = Callable[..., Graph]


def _finish(run: Run, into: Path) -> None:
    """What a run would leave, a pattern and weights among it."""
    star(8).save(into / "pattern.safetensors")
    (into / "metrics.jsonl").write_text("{}\n")
    (into / "model").mkdir()
    (into / "model" / "model.safetensors").write_bytes(b"weights")
    write_json(into / "run.json", {"settings": {"address": run.address}})
    write_json(into / "result.json", {**run.result_fields(), "sparsity": 0.1 + 0.2})


def _record_all(graph: Graph, out: Path, into: Path) -> None:
    for run in graph.runs.values():
        (out / "runs" / run.id).mkdir(parents=True)
        _finish(run, out / "runs" / run.id)
        assert write_record(run, out / "runs" / run.id, into)


def test_a_record_gives_back_the_same_bytes_without_weights_and_steps(graph_of: GraphOf, tmp_path: Path) -> None:
    run = next(run for run in graph_of("pruning").runs.values() if run.stage == "prune")
    made, into = tmp_path / "made", tmp_path / "kept"
    made.mkdir()
    _finish(run, made)
    assert write_record(run, made, into)
    assert not write_record(run, made, into)
    restore(into, run.id, tmp_path / "back")
    names = {path.name for path in (tmp_path / "back").iterdir()}
    assert names == recorded_files(into, run.id) == {"pattern.safetensors", "run.json", "result.json"}
    for name in names:
        assert (tmp_path / "back" / name).read_bytes() == (made / name).read_bytes()


def test_what_words_describe_is_not_recorded_again(graph_of: GraphOf, tmp_path: Path) -> None:
    graph = graph_of("patterns")
    _record_all(graph, tmp_path / "out", tmp_path / "kept")
    for run in graph.runs.values():
        assert ("pattern.safetensors" in recorded_files(tmp_path / "kept", run.id)) == (run.stage == "search")


@pytest.mark.parametrize(("size", "kept"), [(2**18, True), (2**18 + 1, False)])
def test_of_a_search_only_a_small_gate_is_recorded(graph_of: GraphOf, tmp_path: Path, size: int, kept: bool) -> None:
    run = next(run for run in graph_of("patterns").runs.values() if run.stage == "search")
    _finish(run, tmp_path)
    (tmp_path / "gate.safetensors").write_bytes(bytes(size))
    write_record(run, tmp_path, tmp_path / "kept")
    files = recorded_files(tmp_path / "kept", run.id)
    assert "pattern.safetensors" in files
    assert ("gate.safetensors" in files) == kept


def test_only_what_a_missing_run_needs_is_made_again(graph_of: GraphOf, tmp_path: Path) -> None:
    graph, kept = graph_of("pruning"), tmp_path / "kept"
    _record_all(graph, tmp_path / "theirs", kept)
    place = Place(tmp_path / "ours", "m", None, None, kept)
    assert folder.runs_to_make(graph, place) == []
    lost = next(r for r in graph.runs.values() if r.stage == "adapt" and r.condition.method == "p")
    record_of(kept, lost.id).unlink()
    again = folder.runs_to_make(graph, place)
    # The pruned pattern is in its record; only the weights that the run starts from are not.
    assert [run.stage for run in again] == ["base", "adapt"]
    assert not (tmp_path / "ours").exists()
    others = [run for run in graph.runs.values() if run not in again]
    assert folder.take_finished(others, place) == len(others)
    assert folder.take_finished(others, place) == 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"version": 2}, "is no record"),
        ({"id": "another"}, "is no record"),
        ({"files": {"../run.json": {}}}, "is no record"),
        ({"packed": {"weights.bin": ""}}, "is no record"),
        ({"packed": {"pattern.safetensors": "%"}}, "is damaged"),
        ({"packed": {"pattern.safetensors": "bm90IGNvbXByZXNzZWQ="}}, "is damaged"),
        ({"packed": {"pattern.safetensors": "/Td6WFo="}}, "cut off"),
    ],
)
def test_a_bad_record_is_refused(tmp_path: Path, change: dict[str, object], words: str) -> None:
    write_json(tmp_path / "a.json", {"version": 1, "id": "a", "files": {}, "packed": {}, **change})
    with pytest.raises(FileError, match=words):
        restore(tmp_path, "a", tmp_path / "run")
    assert not (tmp_path / "run" / "result.json").exists()


def test_records_are_unpacked_without_a_sync(
    graph_of: GraphOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, kept = graph_of("pruning"), tmp_path / "kept"
    _record_all(graph, tmp_path / "out", kept)
    write_json(kept / "study.json", {})
    syncs: list[int] = []
    monkeypatch.setattr(os, "fsync", syncs.append)
    with unpacked(kept) as study:
        assert {path.parent.name for path in study.glob("runs/*/result.json")} == set(graph.runs)
        assert syncs == []
        write_json(tmp_path / "page", {})
    assert len(syncs) == 2


@pytest.mark.long
def test_a_recorded_study_makes_nothing_again_and_gives_the_same_report(small_study: Path, tmp_path: Path) -> None:
    corpus, kept = small_study.parent / "text", tmp_path / "kept"
    with planned(small_config(small_study, corpus, record=kept)) as plan:
        assert record(plan) == len(plan.graph.runs)
    there = tmp_path / "there"
    with planned(small_config(there, corpus, finished=kept)) as plan:
        assert plan.missing == []
        run_study(plan, Lines("recorded"))
    assert read_json(there / "study.json") == read_json(small_study / "study.json")
    for study in (small_study, there):
        write_report(study, study / "report.html")
    told = CliRunner().invoke(app, ["report", str(kept), "--out", str(tmp_path / "report.html")])
    assert told.exit_code == 0, told.output
    page = (small_study / "report.html").read_text()
    assert (there / "report.html").read_text() == page
    assert (tmp_path / "report.html").read_text() == re.sub(r"\./runs/(\w+)/", r"./kept/\1.json", page)
    assert not list(there.glob("runs/*/model"))


class _StopsAfterOne(Lines):
    def done(self, run: Run, left: float) -> None:
        raise KeyboardInterrupt


@pytest.mark.long
def test_a_run_is_recorded_as_it_ends_not_when_the_study_does(small_study: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    config = small_config(tmp_path / "out", small_study.parent / "text", record=kept)
    with planned(config) as plan, pytest.raises(RunInterruptedError):
        run_study(plan, _StopsAfterOne("stopped"))
    finished = [run for run in plan.graph.runs if (plan.place.folder(run) / "result.json").is_file()]
    assert len(finished) == 1
    assert {path.stem for path in kept.iterdir()} == {"study", *finished}
