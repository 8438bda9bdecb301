"""Records: finished runs in one small file, and a study that takes them over."""

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sparsebert.cli import app
from sparsebert.errors import ConfigError, FileError, RunInterruptedError
from sparsebert.files import read_json, readable_json, sha256, unsynced, write_json
from sparsebert.patterns import star
from sparsebert.progress import Lines
from sparsebert.report.writing import write_report
from sparsebert.studies import folder
from sparsebert.studies.graph import Graph
from sparsebert.studies.jobs import StudyPaths
from sparsebert.studies.journal import Journal
from sparsebert.studies.record_format import files_of, record_of
from sparsebert.studies.record_store import RecordFile, open_records, record_file, restore, unpacked, write_record
from sparsebert.studies.runs import Run
from sparsebert.studies.study import planned, record, run_study
from tests.studies.conftest import small_config

GraphOf = Callable[..., Graph]
PUBLISHED = Path(__file__).resolve().parents[2] / "docs" / "results" / "runs.jsonl.zst"


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
        (out / "runs" / run.id).mkdir(parents=True, exist_ok=True)
        with unsynced():
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
    assert names == open_records(into).names(run.id) == {"pattern.safetensors", "run.json", "result.json"}
    for name in names:
        assert (tmp_path / "back" / name).read_bytes() == (made / name).read_bytes()


def test_what_words_describe_is_not_recorded_again(graph_of: GraphOf, tmp_path: Path) -> None:
    graph = graph_of("patterns")
    _record_all(graph, tmp_path / "out", tmp_path / "kept")
    for run in graph.runs.values():
        assert ("pattern.safetensors" in open_records(tmp_path / "kept").names(run.id)) == (run.stage == "search")


@pytest.mark.parametrize(("size", "kept"), [(2**18, True), (2**18 + 1, False)])
def test_of_a_search_only_a_small_gate_is_recorded(graph_of: GraphOf, tmp_path: Path, size: int, kept: bool) -> None:
    run = next(run for run in graph_of("patterns").runs.values() if run.stage == "search")
    _finish(run, tmp_path)
    (tmp_path / "gate.safetensors").write_bytes(bytes(size))
    write_record(run, tmp_path, tmp_path / "kept")
    files = open_records(tmp_path / "kept").names(run.id)
    assert "pattern.safetensors" in files
    assert ("gate.safetensors" in files) == kept


def test_only_what_a_missing_run_needs_is_made_again(graph_of: GraphOf, tmp_path: Path) -> None:
    graph, kept = graph_of("pruning"), tmp_path / "kept"
    _record_all(graph, tmp_path / "theirs", kept)
    paths = StudyPaths(tmp_path / "ours", "m", None, None, kept)
    assert folder.runs_to_make(graph, paths) == []
    lost = next(r for r in graph.runs.values() if r.stage == "adapt" and r.condition.method == "p")
    kept.unlink()
    for run in graph.runs.values():
        assert run == lost or write_record(run, tmp_path / "theirs" / "runs" / run.id, kept)
    again = folder.runs_to_make(graph, paths)
    # The pruned pattern is in its record; only the weights that the run starts from are not.
    assert [run.stage for run in again] == ["base", "adapt"]
    assert not (tmp_path / "ours").exists()
    others = [run for run in graph.runs.values() if run not in again]
    with unsynced():
        assert folder.take_finished(others, paths) == len(others)
    assert folder.take_finished(others, paths) == 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"version": 2}, "holds no record of run a"),
        ({"id": "another"}, "holds no record of run a"),
        ({"files": {"../run.json": {}}}, "holds no record of run a"),
        ({"packed": {"weights.bin": ""}}, "holds no record of run a"),
        ({"packed": {"pattern.safetensors": "%"}}, "is damaged"),
        ({"packed": {"pattern.safetensors": "bm90IGNvbXByZXNzZWQ="}}, "is damaged"),
        ({"packed": {"pattern.safetensors": "/Td6WFo="}}, "cut off"),
    ],
)
def test_a_bad_record_is_refused(tmp_path: Path, change: dict[str, object], words: str) -> None:
    bad = {"version": 1, "id": "a", "files": {}, "packed": {}, **change}
    write_json(tmp_path / "older" / "a.json", bad)
    with Journal(tmp_path / "kept").appending() as appender:
        appender.append(bad, 0)
    for records in (tmp_path / "older", tmp_path / "kept"):
        with pytest.raises(FileError, match=words):
            restore(records, "a", tmp_path / "run")
    assert not (tmp_path / "run" / "result.json").exists()


def test_a_run_that_is_not_recorded_cannot_be_restored(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="holds no record of run a"):
        restore(tmp_path / "kept", "a", tmp_path / "run")


def test_a_folder_of_records_that_an_older_version_wrote_still_reads(graph_of: GraphOf, tmp_path: Path) -> None:
    graph, older, kept = graph_of("pruning"), tmp_path / "older", tmp_path / "kept"
    _record_all(graph, tmp_path / "out", kept)
    description = folder.describe(graph, ["pruning"])
    folder.record_study(kept, description)
    write_json(older / "study.json", description)
    paths = StudyPaths(tmp_path / "ours", "m", None, None, older)
    with unsynced():
        for run_id, run in graph.runs.items():
            write_json(older / f"{run_id}.json", record_of(run, tmp_path / "out" / "runs" / run_id))
        assert folder.runs_to_make(graph, paths) == []
        assert folder.take_finished(graph.runs.values(), paths) == len(graph.runs)
    with unpacked(older) as one, unpacked(kept) as other:
        assert _bytes_below(one) == _bytes_below(other)
        assert len(_bytes_below(one)) > len(graph.runs)


def _bytes_below(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_records_go_to_a_file_and_a_folder_is_refused(graph_of: GraphOf, tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"is a folder.*give --record a file"):
        folder.record_study(tmp_path, folder.describe(graph_of("pruning"), ["pruning"]))


def test_records_of_another_study_are_refused_by_name(graph_of: GraphOf, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    folder.record_study(kept, folder.describe(graph_of("pruning"), ["pruning"]))
    size = kept.stat().st_size
    assert not RecordFile(kept).add_study(folder.describe(graph_of("pruning"), ["pruning"]))
    folder.record_study(kept, folder.describe(graph_of("pruning"), ["pruning"]))
    with pytest.raises(ConfigError, match=r"threads is 1 in .*kept but 2 now"):
        folder.record_study(kept, folder.describe(graph_of("pruning", threads=2), ["pruning"]))
    assert kept.stat().st_size == size
    folder.record_study(kept, folder.describe(graph_of("stages"), ["stages"]))
    assert record_file(kept).study()["name"] == "stages"


def test_what_another_process_records_is_seen_and_not_recorded_twice(graph_of: GraphOf, tmp_path: Path) -> None:
    run, *others = graph_of("pruning").runs.values()
    made, kept = tmp_path / "made", tmp_path / "kept"
    made.mkdir()
    _finish(run, made)
    mine, theirs = RecordFile(kept), RecordFile(kept)
    assert (mine.ids(), theirs.ids()) == ([], [])
    assert theirs.add(record_of(run, made))
    assert mine.ids() == [run.id]
    assert not mine.add(record_of(run, made))
    assert mine.add(record_of(others[0], made))
    assert theirs.read(others[0].id) == mine.read(others[0].id) is not None
    kept.unlink()
    assert theirs.ids() == []


def test_the_published_records_give_back_every_file_that_was_ever_recorded() -> None:
    """Sums that were taken over the folder with a JSON file a run, before it became the beginning of this file."""
    entries = [entry for place, entry in Journal(PUBLISHED).entries() if place.end <= 17_915_597]
    study, *records = entries
    sums = [f"{one['id']}/{name} {sha256(data)}\n" for one in records for name, data in files_of(one, PUBLISHED)]
    assert (len(records), len(sums)) == (763, 2639)
    assert sha256("".join(sorted(sums)).encode()) == "780ba5e9ec3b6235f72ec9d4b923a7897f1ecceb2b7815b8c3dfc6d9d6c59e05"
    about = readable_json(study["study"])
    assert sha256(about) == "a19ea3be81df1807466379c00d8cf869a63c62f9688d76a0930a394266146fb6"


def test_records_are_unpacked_without_a_sync(
    graph_of: GraphOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, kept = graph_of("pruning"), tmp_path / "kept"
    _record_all(graph, tmp_path / "out", kept)
    folder.record_study(kept, folder.describe(graph, ["pruning"]))
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
        assert record(plan, plan.graph.runs.values()) == len(plan.graph.runs)
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
    assert (tmp_path / "report.html").read_text() == re.sub(r"\./runs/(\w+)/", "./kept", page)
    assert not list(there.glob("runs/*/model"))


class _StopsAfterOne(Lines):
    def step(self, done: int, words: str, left: float) -> None:
        raise KeyboardInterrupt


@pytest.mark.long
def test_a_run_is_recorded_as_it_ends_not_when_the_study_does(small_study: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    config = small_config(tmp_path / "out", small_study.parent / "text", record=kept)
    with planned(config) as plan, pytest.raises(RunInterruptedError):
        run_study(plan, _StopsAfterOne("stopped"))
    finished = [run for run in plan.graph.runs if (plan.paths.folder(run) / "result.json").is_file()]
    assert len(finished) == 1
    assert RecordFile(kept).ids() == finished
    assert RecordFile(kept).study() is not None
