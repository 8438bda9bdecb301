"""`sparsebert export` from a model to a file."""

from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from sparsebert import encode
from sparsebert.cli import app
from sparsebert.errors import SparseBertError
from tests.model.sentence_cases import TEXTS, tiny_sentence_folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_sentence_folder(tmp_path_factory.mktemp("sentences"))


def run(*words: object) -> str:
    result = CliRunner().invoke(app, ["export", *map(str, words)])
    if result.exception is not None:
        raise result.exception
    return result.stdout


def test_a_model_folder_becomes_a_file_that_torch_opens(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "model.pt2"
    said = run("--model", folder, "--pattern", "star", "--length", 40, "--out", out)
    assert f"{out}: torch" in said
    assert "up to 40 tokens" in said
    assert "inputs input_ids, attention_mask; outputs last_hidden_state, sentence_embedding" in said
    from transformers import AutoTokenizer

    read = AutoTokenizer.from_pretrained(folder)(TEXTS[:2], return_tensors="pt", padding=True)
    _, found = torch.export.load(out).module()(read["input_ids"], read["attention_mask"])
    expected = torch.from_numpy(encode(TEXTS[:2], folder, pattern="star", length=40))
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)


def test_with_a_head_its_scores_are_written(folder: Path, tmp_path: Path) -> None:
    said = run("--model", folder, "--head", "masked_lm", "--pattern", "star", "--out", tmp_path / "model.pt2")
    assert "inputs input_ids, attention_mask, token_type_ids; outputs logits" in said
    assert "up to 64 tokens" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--out", "model.bin"], "neither .onnx nor .pt2"),
        (["--out", "model.onnx", "--format", "torch"], "ends in .pt2"),
        (["--out", "model.pt2", "--head", "masked"], "no head 'masked'"),
        (["--out", "model.pt2", "--length", "900"], "takes 2 to 64 tokens"),
    ],
)
def test_mistakes_end_in_a_sentence(folder: Path, tmp_path: Path, words: list[str], said: str) -> None:
    words[1] = str(tmp_path / words[1])
    with pytest.raises(SparseBertError, match=said):
        run("--model", folder, *words)
    assert list(tmp_path.iterdir()) == []
