import json
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from sparsebert import patterns
from sparsebert.cli import app
from sparsebert.errors import ConfigError
from sparsebert.text import prepare_corpus

torch.set_num_threads(1)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus") / "store"
    prepare_corpus(["builtin:python-docs"], folder, model="scratch:tiny", train_vocab=400, workers=1)
    return folder


def invoke(*arguments: object) -> str:
    done = CliRunner().invoke(app, ["pretrain", *map(str, arguments)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_the_command_trains_and_the_same_command_finds_it_done(corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    sizes = ("--steps", 4, "--length", 32, "--batch-size", 4, "--set", "num_held_out=1")
    command = ("--model", "scratch:tiny", "--corpus", corpus, "--pattern", "star", *sizes, "--out", out)
    said = invoke(*command)
    assert "4 steps, held-out MLM loss" in said
    assert invoke(*command).endswith(said.splitlines()[-1] + "\n")
    result = json.loads((out / "result.json").read_text())
    assert result["score"] == result["metrics"]["mlm_loss"]
    assert (out / "model" / "tokenizer.json").is_file()
    run = json.loads((out / "run.json").read_text())
    assert run["fit"]["micro_batches"] == 2
    with pytest.raises(ConfigError, match="learning_rate"):
        invoke(*command, "--learning-rate", "1e-3")


def test_a_dry_run_of_the_papers_recipe_says_what_it_costs() -> None:
    said = invoke("--recipe", "paper", "--dry-run", "--device-flops", "5e13", "--devices", 8)
    assert "12 layers, width 768, 30,000 words, length 128" in said
    assert "batch 256, 4,028,320 steps" in said
    assert "2.1 days" in said


def test_a_dry_run_counts_the_corpus_words_and_the_models_own_pattern(corpus: Path, tmp_path: Path) -> None:
    sizes = ("--steps", 2, "--batch-size", 4)
    on_corpus = ("--model", "scratch:tiny", "--corpus", corpus, *sizes)
    dry = ("--dry-run", "--device-flops", "1e12")
    assert "400 words, length 32" in invoke("--recipe", "paper", *on_corpus, "--length", 32, *dry)
    invoke(*on_corpus, "--length", 32, "--pattern", "star", "--set", "num_held_out=1", "--out", tmp_path / "run")
    own = ("--model", tmp_path / "run", "--corpus", corpus, *sizes)
    for length in (32, 16):
        expected = f"attention density {1 - patterns.star(length=length).sparsity:.3f}"
        assert expected in invoke(*own, "--length", length, *dry)
    with pytest.raises(ConfigError, match="has no vocabulary yet"):
        invoke("--model", "scratch:tiny", "--steps", 1, *dry)


def test_options_come_before_the_recipe_and_its_epochs_follow_the_corpus(corpus: Path) -> None:
    said = invoke("--recipe", "paper", "--corpus", corpus, "--batch-size", 16, "--dry-run", "--device-flops", "1e12")
    steps = int(said.split("batch 16, ")[1].split(" steps")[0].replace(",", ""))
    assert 0 < steps < 10_000


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("--model", "scratch:tiny"), "--steps"),
        (("--steps", "3"), "--model"),
        (("--model", "scratch:tiny", "--steps", "3"), "--out"),
        (("--model", "scratch:tiny", "--steps", "3", "--out", "x"), "--corpus"),
        (("--model", "scratch:tiny", "--steps", "3", "--set", "colour=red"), "colour"),
        (("--model", "scratch:tiny", "--steps", "3", "--set", "seed=1"), "seed has an option of its own"),
        (("--model", "scratch:tiny", "--steps", "0", "--dry-run", "--set", "vocab_size=9"), "steps is 0"),
    ],
)
def test_what_is_missing_or_unknown_is_named(arguments: tuple[str, ...], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        invoke(*arguments)


def test_a_corpus_of_another_vocabulary_is_refused(corpus: Path, tmp_path: Path) -> None:
    from sparsebert.errors import CorpusError

    with pytest.raises(CorpusError, match="another one"):
        invoke("--model", "minilm", "--corpus", corpus, "--steps", 1, "--out", tmp_path / "run")
