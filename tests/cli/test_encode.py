"""`sparsebert encode` from a file to a file."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from sparsebert import encode
from sparsebert.cli import app
from sparsebert.errors import SparseBertError
from tests.model.sentence_cases import TEXTS, tiny_sentence_folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_sentence_folder(tmp_path_factory.mktemp("sentences"))


def run(*words: object) -> str:
    result = CliRunner().invoke(app, ["encode", *map(str, words)])
    if result.exception is not None:
        raise result.exception
    return result.stdout


def test_a_line_is_a_row_of_an_array(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("\n".join([*TEXTS, "", " ".join(TEXTS)]) + "\n")
    said = run(tmp_path / "in.txt", "--model", folder, "--out", tmp_path / "out.npy")
    np.testing.assert_allclose(np.load(tmp_path / "out.npy"), encode([*TEXTS, "", " ".join(TEXTS)], folder), atol=1e-6)
    assert "8 texts" in said
    assert "tokens/s" in said
    assert "1 of 8 texts were cut at 40 tokens" in said


def test_json_lines_keep_the_ids_and_give_spans_of_chunks(folder: Path, tmp_path: Path) -> None:
    rows = [{"id": f"t{number}", "text": text} for number, text in enumerate(TEXTS)]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    run(tmp_path / "in.jsonl", "--model", folder, "--chunks", 7, "--pattern", "star", "--out", tmp_path / "out.jsonl")
    found = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    expected = encode(TEXTS, folder, chunks=7, pattern="star")
    assert len(found) == sum(map(len, expected))
    for line in found:
        chunk = expected[line["row"]][line["chunk"]]
        assert (line["id"], line["start"], line["end"]) == (f"t{line['row']}", chunk.start, chunk.end)
        np.testing.assert_allclose(line["embedding"], chunk.embedding, atol=1e-6)


@pytest.mark.parametrize(
    ("file", "words", "said"),
    [
        ("a text", ["--out", "out.csv"], "ends in .npy or .jsonl"),
        ("a text", ["--out", "out.npy", "--chunks", "4"], "choose a .jsonl file"),
        ("", ["--out", "out.npy"], "holds no text"),
        ("a text", ["--out", "."], "is a folder"),
        ("a text", ["--out", "out.npy", "--precision", "fp64"], "there is no precision"),
    ],
)
def test_a_wrong_argument_is_refused_before_a_model_is_read(
    file: str, words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in.txt").write_text(file)
    with pytest.raises(SparseBertError, match=said):
        run("in.txt", "--model", "no/such/folder", *words)


@pytest.mark.parametrize(("line", "said"), [("{", "is not JSON"), ('{"body": "x"}', "has no text"), ("[]", "no text")])
def test_a_line_that_holds_no_text_is_named(line: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"text": "fine"}\n' + line + "\n")
    with pytest.raises(SparseBertError, match=f"line 2 .*{said}"):
        run(tmp_path / "in.jsonl", "--model", "minilm", "--out", tmp_path / "out.npy")
