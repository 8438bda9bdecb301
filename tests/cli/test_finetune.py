"""The finetune command: check, train, refuse."""

import json
from pathlib import Path

from typer.testing import CliRunner

from sparsebert.cli import app

_TINY = ["--model", "scratch:tiny", "--max-rows", "16", "--max-dev-rows", "8", "--epochs", "1"]


def test_checking_data_reports_rows_and_trains_nothing() -> None:
    done = CliRunner().invoke(app, ["finetune", "rte", "--check-data"])
    assert done.exit_code == 0
    assert "train.tsv: 192 rows (entailment:" in done.output


def test_problems_in_the_data_are_listed_and_end_with_two(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_text("gj04\t1\t\tfine\ngj04\tx\t\tbad\n")
    done = CliRunner().invoke(app, ["finetune", "cola", "--data", str(tmp_path), "--check-data", "--json"])
    assert done.exit_code == 2
    assert "line 2" in json.loads(done.output.splitlines()[0])["problems"][0]


def test_a_run_prints_its_result(tmp_path: Path) -> None:
    command = [
        "finetune",
        "sst2",
        *_TINY,
        "--pattern",
        "star",
        "--set",
        "stride=4",
        "--set",
        "micro_batches=2",
        "--json",
    ]
    done = CliRunner().invoke(app, [*command, "--out", str(tmp_path)])
    assert done.exit_code == 0
    assert json.loads(done.output.splitlines()[-1])["task"] == "sst2"
    card = (tmp_path / "model" / "README.md").read_text()
    (made_by,) = [line for line in card.splitlines() if line.startswith("sparsebert finetune")]
    words = "sst2 --data builtin:tasks --model scratch:tiny --set micro_batches=2 --set stride=4 --epochs 1.0"
    assert made_by == f"sparsebert finetune {words} --max-rows 16 --max-dev-rows 8 --pattern star --out RUN"


def test_several_seeds_give_an_interval(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["finetune", "sst2", *_TINY, "--seeds", "2", "--out", str(tmp_path)])
    assert done.exit_code == 0
    assert "over 2 seeds, 95 % interval" in done.output
    assert (tmp_path / "seed-1" / "model" / "model.safetensors").is_file()
    done = CliRunner().invoke(app, ["finetune", "rte", *_TINY, "--out", str(tmp_path)])
    assert "result.json but no run.json" in str(done.exception)
    done = CliRunner().invoke(app, ["finetune", "sst2", *_TINY, "--seeds", "2", "--out", str(tmp_path / "seed-1")])
    assert "is the folder of one run" in str(done.exception)


def test_a_run_without_a_folder_or_with_an_unknown_setting_is_refused(tmp_path: Path) -> None:
    runner = CliRunner()
    assert "no --out" in str(runner.invoke(app, ["finetune", "sst2"]).exception)
    done = runner.invoke(app, ["finetune", "sst2", "--out", str(tmp_path), "--set", "colour=red"])
    assert "'colour'" in str(done.exception)
    done = runner.invoke(app, ["finetune", "sst2", "--out", str(tmp_path), "--anchor", "left"])
    assert "auto, token or position" in str(done.exception)
