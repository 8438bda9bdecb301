"""The study command: what it shows before it runs, and how it stops."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from sparsebert.cli import app
from sparsebert.errors import ConfigError, GateError, StudyError
from sparsebert.files import read_json

FEW = ["--set", "stage_sparsities=[0.9]", "--set", 'stage_tasks=["rte"]', "--workers", "1", "--device-flops", "1e10"]


def _study(*words: str) -> str:
    result = CliRunner().invoke(app, ["study", *words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.output


def test_a_dry_run_shows_the_graph_and_its_time_and_makes_nothing(tmp_path: Path) -> None:
    out = tmp_path / "study"
    shown = _study("stages", "--out", str(out), "--dry-run", *FEW)
    assert "search     DAM_s 90%" in shown
    assert "finetune   rte" in shown
    assert "to make: 1 base" in shown
    assert "stages: pre-training" in shown
    assert shown.index("stages: pre-training") < shown.index("stages: fine-tuning")
    assert "hours of one slot" in shown
    assert not out.exists()


def test_the_paper_scale_says_what_it_costs_and_runs_nothing(tmp_path: Path) -> None:
    shown = _study("all", "--scale", "paper", "--out", str(tmp_path), "--device-flops", "1e14")
    assert "scale paper" in shown
    assert "operations" in shown
    assert "nothing was run" in shown
    assert not (tmp_path / "study.json").exists()


def test_the_paper_scale_will_not_run_without_text_and_tasks(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--corpus and --data missing"):
        _study("all", "--scale", "paper", "--confirm", "--out", str(tmp_path), "--device-flops", "1e14")


def test_mistakes_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no study 'stage'"):
        _study("stage", "--out", str(tmp_path))
    with pytest.raises(ConfigError, match="engine is 'slurm'; expected local or ray"):
        _study("stages", "--engine", "slurm", "--out", str(tmp_path))
    with pytest.raises(ConfigError, match="no setting 'speed'"):
        _study("stages", "--set", "speed=1", "--out", str(tmp_path))
    with pytest.raises(ConfigError, match="so no finished runs are in it"):
        _study("stages", "--finished", str(tmp_path), "--out", str(tmp_path / "other"))
    with pytest.raises(ConfigError, match="workers is 0; expected a whole number of at least 1"):
        _study("stages", "--workers", "0", "--out", str(tmp_path))


def test_a_sparsity_beyond_the_border_is_refused_before_any_run(tmp_path: Path) -> None:
    with pytest.raises(GateError, match="cannot be reached"):
        _study("stages", "--set", "length=16", "--device-flops", "1e9", "--out", str(tmp_path))
    assert not (tmp_path / "runs").exists()


@pytest.mark.long
def test_a_study_stops_when_its_time_is_up_goes_on_and_serves_another_folder(tmp_path: Path) -> None:
    first, recorded = tmp_path / "first", ["--record", str(tmp_path / "kept.jsonl.zst")]
    with pytest.raises(StudyError, match=r"time is up with 11 runs left"):
        _study("stages", "--out", str(first), "--max-hours", "0.000001", *recorded, *FEW)
    assert "11 runs finished" in _study("stages", "--out", str(first), *recorded, *FEW)
    assert "11 runs finished" in _study("stages", "--out", str(first), *recorded, *FEW)  # and into the same file
    assert "finished" in _study("stages", "--out", str(first), "--dry-run", *FEW)
    before = {path: path.stat().st_mtime_ns for path in first.glob("runs/*/result.json")}
    assert "11 runs finished" in _study("stages", "--out", str(first), *FEW)
    assert before == {path: path.stat().st_mtime_ns for path in first.glob("runs/*/result.json")}
    _study("stages", "--out", str(tmp_path / "second"), "--finished", str(first), *FEW)
    assert read_json(tmp_path / "second" / "study.json") == read_json(first / "study.json")
    for path in before:
        assert (tmp_path / "second" / path.relative_to(first)).read_bytes() == path.read_bytes()
