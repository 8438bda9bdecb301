"""Chains of commands in the docs work: each finds what the one before it wrote."""

import shutil
from pathlib import Path

import pytest
from transformers import BertConfig, BertModel
from typer.testing import CliRunner

from sparsebert.cli import app
from sparsebert.model import sources
from tests.docs.commands import commands
from tests.docs.pages import PROJECT, blocks
from tests.docs.stages import TINY, a_text, the_tasks

STEPS = "2"  # in place of what the page says, as is a model of no size in place of minilm: the rest is as written


@pytest.fixture
def _tiny_minilm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vocabulary = sources.model_folder("minilm") / "tokenizer.json"
    folder = tmp_path / "stand-in"
    BertModel(BertConfig(vocab_size=30522, **TINY)).save_pretrained(folder)
    shutil.copy(vocabulary, folder)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr(sources, "_minilm", lambda: folder)


def run_shell(page: str) -> str:
    """Every command of ours in the page's sh blocks, in order; what printf prints is the next one's input.

    Gives what they said."""
    given = said = ""
    code = "\n".join(block.code for block in blocks(PROJECT / page) if block.language == "sh")
    for words in commands(code):
        if words[0] == "printf":
            given = words[1].encode().decode("unicode_escape")
        elif words[0] == "sparsebert":
            done = CliRunner().invoke(app, _shorter(words[1:]), input=given)
            assert done.exit_code == 0, f"{' '.join(words)}: {done.exception!r}\n{done.output}"
            given, said = "", said + done.output
    return said


def _shorter(words: list[str]) -> list[str]:
    return [STEPS if before == "--steps" else word for before, word in zip(["", *words], words, strict=False)]


@pytest.mark.usefixtures("_tiny_minilm")
def test_the_readme_leads_from_text_to_a_sparse_model() -> None:
    a_text()
    run_shell("README.md")
    assert Path("adapted/model/config.json").is_file()


@pytest.mark.usefixtures("_tiny_minilm")
def test_a_file_of_texts_becomes_embeddings_as_the_page_says() -> None:
    Path("text.txt").write_text("Rivers run to the sea.\nThey carry sand.\n")
    run_shell("docs/embeddings.md")
    assert Path("embeddings.npy").is_file()
    assert len(Path("chunks.jsonl").read_text().splitlines()) == 2


@pytest.mark.long
@pytest.mark.usefixtures("_tiny_minilm")
def test_a_pattern_is_learned_and_pruned_as_the_page_on_learning_says() -> None:
    a_text()
    run_shell("docs/learning.md")
    assert Path("two-stage.safetensors").is_file()


@pytest.mark.usefixtures("_tiny_minilm")
def test_a_task_is_trained_predicted_and_submitted_as_the_page_on_tasks_says() -> None:
    the_tasks()
    run_shell("docs/tasks.md")
    assert Path("glue.zip").is_file()


@pytest.mark.usefixtures("_tiny_minilm")
def test_the_cost_of_the_recipe_is_told_as_the_page_on_training_says() -> None:
    said = run_shell("docs/training.md")
    assert "scratch:base: 12 layers, width 768" in said
    assert "on each of 8 (rate as given): 2.1 days" in said
