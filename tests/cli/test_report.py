"""The report command writes what it says, and refuses what is no study."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from sparsebert.cli import app
from sparsebert.errors import FileError
from tests.report.synthetic import World, write_study


def test_a_page_findings_and_figures(tmp_path: Path) -> None:
    write_study(World(scale="smoke", seeds=1, tasks=("rte",)), tmp_path / "study")
    out, figures = tmp_path / "page" / "report.html", tmp_path / "figures"
    done = CliRunner().invoke(app, ["report", str(tmp_path / "study"), "--out", str(out), "--figures", str(figures)])
    assert done.exit_code == 0, done.output
    assert "15 not enough evidence" in done.output
    assert out.is_file()
    assert (out.parent / "findings.json").is_file()
    assert {path.suffix for path in figures.iterdir()} == {".svg", ".pdf"}


def test_a_page_is_named_after_its_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_study(World(scale="smoke", seeds=1, tasks=("rte",)), tmp_path / "study")
    assert CliRunner().invoke(app, ["report", "study", "--format", "md"]).exit_code == 0
    assert (tmp_path / "report.md").is_file()
    assert not (tmp_path / "report.html").exists()


def test_a_folder_that_is_no_study_is_refused(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["report", str(tmp_path)])
    assert isinstance(done.exception, FileError)
