"""The prepare command: what it says and what it leaves behind."""

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from sparsebert.cli.prepare import prepare
from sparsebert.errors import CorpusError
from sparsebert.text import TokenStore

app = typer.Typer()
app.command()(prepare)


def _run(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments), catch_exceptions=True)
    if result.exception is not None:
        raise result.exception
    return result.output


def test_the_built_in_text_becomes_a_corpus(tmp_path: Path) -> None:
    arguments = ["builtin:python-docs", "--model", "scratch:tiny", "--train-vocab", "500", "--out", str(tmp_path / "c")]
    store_words = _run(*arguments)
    store = TokenStore.open(tmp_path / "c")
    assert f"{store.num_documents:,} documents" in store_words
    assert f"{store.num_tokens:,} tokens" in store_words
    assert "skipped" not in store_words
    assert f"{store.num_tokens:,} tokens" in _run(*arguments), "the same command again finds it finished"


def test_what_was_skipped_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"Cats\nThe cat sat. It ran.\n\xff\n\nDogs\nThe dog sat.\n\nalone\n")
    arguments = [
        str(tmp_path / "a.txt"),
        "--model",
        "scratch:tiny",
        "--train-vocab",
        "100",
        "--out",
        str(tmp_path / "c"),
    ]
    with pytest.raises(CorpusError, match=r"a\.txt, line 3"):
        _run(*arguments)
    output = _run(*arguments, "--skip-bad-lines")
    assert "skipped: 1 invalid utf8" in output
    assert "skipped: 1 one sentence" in output
