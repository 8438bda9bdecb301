"""adapt and compare as a user types them."""

import json
import re
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from sparsebert.cli import app
from sparsebert.errors import SparseBertError
from sparsebert.runs import PretrainRun
from sparsebert.text import prepare_corpus

torch.set_num_threads(1)
SIZES = ("--length", 24, "--batch-size", 4, "--set", "num_held_out=1")


def invoke(*arguments: object) -> str:
    done = CliRunner().invoke(app, [*map(str, arguments)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lab")
    prepare_corpus(["builtin:python-docs"], folder / "corpus", model="scratch:tiny", train_vocab=400, workers=1)
    invoke(
        "pretrain",
        "--model",
        "scratch:tiny",
        "--corpus",
        folder / "corpus",
        "--steps",
        1,
        *SIZES,
        "--out",
        folder / "a",
    )
    return folder


def test_from_a_model_to_an_adapted_one_and_what_it_kept(lab: Path) -> None:
    on = ("--corpus", lab / "corpus")
    said = invoke("search", "--model", lab / "a", *on, "--sparsity", 0.6, "--steps", 2, *SIZES, "--out", lab / "b")
    assert "held-out embedding distance" in said
    assert "embedding cosine" in said
    assert said.splitlines()[-1] == f"page: {(lab / 'b' / 'report.html').as_uri()}"
    said = invoke("adapt", "--model", lab / "b", *on, "--steps", 2, *SIZES, "--out", lab / "c")
    assert "sparse, held-out embedding distance" in said
    assert said.splitlines()[-1] == f"page: {(lab / 'c' / 'report.html').as_uri()}"
    told = json.loads(invoke("compare", lab / "a", lab / "c", *on, "--rows", 16, "--json"))
    assert told["rows"] == 16
    assert 0.5 < told["sparsity"] < 0.7
    assert told["embedding_cosine"] < 1
    table = invoke("compare", lab / "a", lab / "a", "--pattern", "star", *on, "--rows", 16, "--length", 24)
    assert "error by layer" in table


def test_a_comparison_becomes_a_page(lab: Path) -> None:
    command = ("compare", lab / "a", lab / "a", "--corpus", lab / "corpus", "--rows", 16, "--length", 24)
    out = lab / "pages" / "star.html"
    said = invoke(*command, "--pattern", "star", "--out", out)
    assert said.splitlines()[-1] == f"page: {out.as_uri()}"
    assert 'id="explorer-data"' in out.read_text()
    invoke(*command, "--out", lab / "dense.html")  # neither has a pattern, so there is nothing to explore
    assert 'id="explorer-data"' not in (lab / "dense.html").read_text()
    with pytest.raises(SparseBertError, match="is a folder"):
        invoke(*command, "--out", lab)


def test_a_comparison_and_the_speed_are_written_into_the_card(lab: Path) -> None:
    on = ("--corpus", lab / "corpus", "--rows", 16)
    invoke("adapt", "--model", lab / "a", *on[:2], "--pattern", "star", "--steps", 1, *SIZES, "--out", lab / "star")
    card = lab / "star" / "model" / "README.md"
    assert "- Speed: not measured yet" in card.read_text()
    said = invoke("compare", lab / "a", lab / "star", *on, "--card")
    assert said.splitlines()[-1] == f"card: {card}"
    told = card.read_text()
    assert "mean of 16 held-out texts" in told
    assert re.search(r"- Speed: [\d,]+ tokens a second at \d+ tokens \([\d.]+ times dense\)", told)
    assert told.count("## Sparse attention") == 1
    for refused, words in (
        ((lab / "a", lab / "star", "--pattern", "star"), "as it was saved"),
        ((lab / "a", "minilm"), "is no folder"),
        ((lab / "a", lab / "a"), "has no pattern"),
    ):
        with pytest.raises(SparseBertError, match=words):
            invoke("compare", *refused, *on, "--card")


def test_a_model_agrees_with_itself(lab: Path) -> None:
    told = json.loads(invoke("compare", lab / "a", lab / "a", "--corpus", lab / "corpus", "--rows", 16, "--json"))
    assert told["embedding_cosine"] == pytest.approx(1.0)
    assert told["hidden_error"] == 0.0


def test_a_pattern_of_a_builder_takes_its_arguments(lab: Path) -> None:
    command = ("adapt", "--model", lab / "a", "--corpus", lab / "corpus", "--steps", 1, *SIZES)
    invoke(*command, "--pattern", "window", "--set", "pattern.radius=2", "--out", lab / "d")
    with pytest.raises(SparseBertError, match="names no builder"):
        invoke(*command, "--set", "pattern.radius=2", "--out", lab / "e")


def test_what_cannot_be_compared_is_refused(lab: Path) -> None:
    with pytest.raises(SparseBertError, match="no weights yet"):
        invoke("compare", lab / "a", "scratch:tiny", "--corpus", lab / "corpus")
    with pytest.raises(SparseBertError, match="not a finished corpus"):
        invoke("compare", lab / "a", lab / "a", "--corpus", lab / "nowhere")


def test_models_of_other_shapes_cannot_be_compared_nor_teach(lab: Path) -> None:
    other = lab / "other"
    shape = {"num_hidden_layers": 1}
    given = {"model": "scratch:tiny", "corpus": lab / "corpus", "steps": 1, "length": 24, "batch_size": 4}
    PretrainRun.read({**given, "num_held_out": 1, "shape": shape}).make(other)
    with pytest.raises(SparseBertError, match="has 1 layers, the model held against it 2"):
        invoke("compare", other, lab / "a", "--corpus", lab / "corpus", "--rows", 4)
    adapt = ("adapt", "--model", lab / "a", "--corpus", lab / "corpus", "--steps", 1, *SIZES)
    with pytest.raises(SparseBertError, match=r"teacher .*other has 1 layers"):
        invoke(*adapt, "--pattern", "star", "--teacher", other, "--out", lab / "e")
    assert not (lab / "e").exists()
