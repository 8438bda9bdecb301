"""importance, search, prune and demo from the command line, on a model small enough for a test."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from sparsebert import Pattern
from sparsebert.cli import app
from sparsebert.text import prepare_corpus

RUNNER = CliRunner()


def sparsebert(*arguments: object) -> str:
    result = RUNNER.invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus") / "docs"
    prepare_corpus(["builtin:python-docs"], folder, model="scratch:tiny", train_vocab=500, workers=1)
    return folder


def test_importance_prints_its_table_and_both_methods_can_be_drawn_side_by_side(corpus: Path, tmp_path: Path) -> None:
    common = ["--model", "scratch:tiny", "--corpus", corpus, "--steps", 2, "--length", 24, "--batch-size", 4]
    learned = sparsebert("importance", *common, "--out", tmp_path / "gate")
    assert "95 % interval" in learned
    assert learned.splitlines()[-1] == f"page: {(tmp_path / 'gate' / 'report.html').as_uri()}"
    assert "The diagonal" in learned
    maps = [*common, "--method", "attention", "--beside", tmp_path / "gate", "--out", tmp_path / "maps"]
    assert "contrast.png" in sparsebert("importance", *maps)
    assert (tmp_path / "maps" / "contrast.png").is_file()
    page = (tmp_path / "maps" / "report.html").read_text()
    assert page.index("Trained maps, by category") < page.index("Learned P, by category")
    for extra in ([], ["--random"]):
        out = tmp_path / "pruned.safetensors"
        sparsebert("prune", tmp_path / "gate", "--sparsity", 0.9, "--out", out, *extra)
        assert Pattern.load(out).sparsity == pytest.approx(0.9, abs=0.002)


def test_search_says_what_it_found_and_a_finished_run_is_left_alone(corpus: Path, tmp_path: Path) -> None:
    arguments = ["--model", "scratch:tiny", "--corpus", corpus, "--steps", 2, "--length", 24, "--batch-size", 4]
    arguments += ["--sparsity", 0.7, "--set", "rate=0.1", "--out", tmp_path]
    first = sparsebert("search", *arguments)
    assert "% sparse, held-out MLM loss" in first
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.safetensors")}
    assert sparsebert("search", *arguments).splitlines()[-1] == first.splitlines()[-1]
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.safetensors")} == before


def test_a_search_on_a_task_takes_two_levels_and_draws_what_help_promises(tmp_path: Path) -> None:
    sizes = ["--length", 24, "--batch-size", 8, "--steps", 2, "--set", "max_rows=16", "--set", "max_dev_rows=8"]
    learn = ["search", "--model", "scratch:tiny", "--task", "rte", "--sparsity", 0.8, "--levels", 2, *sizes]
    assert "% sparse, rte accuracy" in sparsebert(*learn, "--out", tmp_path)
    for name in ("pattern.png", "sparsity.png", "report.html", "gate.safetensors"):
        assert (tmp_path / name).is_file()
    card = (tmp_path / "model" / "README.md").read_text()
    assert "sparsebert search --task rte --data builtin:tasks --model scratch:tiny" in card


@pytest.mark.long
def test_the_demo_ends_with_a_page_and_goes_on_where_it_was(tmp_path: Path) -> None:
    arguments = ["--out", tmp_path, "--model", "scratch:tiny", "--importance-steps", 2, "--search-steps", 2]
    arguments += ["--length", 24, "--search-length", 24, "--sparsity", 0.7]
    said = sparsebert("demo", *arguments)
    assert "The diagonal" in said
    assert "CPU seconds of one text of 4,096 tokens" in said
    assert said.splitlines()[-1] == f"page: {(tmp_path / 'report.html').as_uri()}"
    page = (tmp_path / "report.html").read_text().splitlines()
    pattern = Pattern.load(tmp_path / "search" / "pattern.safetensors")
    assert (pattern.layers, pattern.heads) == (2, 2)
    assert any(f"{100 * pattern.sparsity:.2f}" in line for line in page)
    (tmp_path / "report.html").unlink()
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.safetensors")}
    assert "The diagonal" in sparsebert("demo", *arguments)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.safetensors")} == before
    again = (tmp_path / "report.html").read_text().splitlines()
    assert len(again) == len(page)
    assert all("CPU seconds" in line for line, other in zip(page, again, strict=True) if line != other)
