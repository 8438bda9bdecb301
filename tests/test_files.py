"""Atomic writes and sealed files."""

import os
from pathlib import Path
from typing import Any

import pytest

from sparsebert import files
from sparsebert.errors import FileError


def test_an_interrupted_write_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "file"
    files.write_atomic(target, b"old")

    def fail(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(FileError, match="No space left"):
        files.write_atomic(target, b"new")
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


def test_json_that_is_not_json_is_named(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(FileError, match=r"run\.json is not valid JSON"):
        files.read_json(tmp_path / "run.json")


def test_canonical_json_has_one_spelling() -> None:
    assert files.canonical_json({"b": [1, 2.5], "a": "é"}) == '{"a":"\\u00e9","b":[1,2.5]}'
    with pytest.raises(ValueError, match="JSON"):
        files.canonical_json(float("nan"))
