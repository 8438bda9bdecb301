"""Atomic writes and sealed files."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
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


def test_a_mapped_file_gives_the_tensors_that_were_sealed(tmp_path: Path) -> None:
    tensors = {"a": np.arange(7, dtype=np.uint16), "b": np.zeros((0, 3), np.int64), "c": np.ones((2, 3), np.float32)}
    data = files.seal_tensors(tensors, {"kind": "test"})
    (tmp_path / "file").write_bytes(data)
    mapped = files.map_tensors(tmp_path / "file", files.sha256(data))
    assert mapped.keys() == tensors.keys()
    for name, array in tensors.items():
        assert np.array_equal(mapped[name], array)
        assert mapped[name].shape == array.shape
    with pytest.raises(FileError, match="is damaged"):
        files.map_tensors(tmp_path / "file", "0" * 64)


@pytest.mark.parametrize(
    "entry",
    [
        {"dtype": "U16", "shape": [4], "data_offsets": [0, 8]},  # beyond the end
        {"dtype": "U16", "shape": [2], "data_offsets": [-4, 0]},
        {"dtype": "U16", "shape": [-1], "data_offsets": [0, 4]},
        {"dtype": "U16", "shape": [2**62], "data_offsets": [0, 4]},
        {"dtype": "F99", "shape": [2], "data_offsets": [0, 4]},
        {"dtype": "U16", "shape": [2]},
        [],
        "text",
    ],
)
def test_a_tensor_outside_its_file_is_refused(tmp_path: Path, entry: Any) -> None:
    header = files.canonical_json({"a": entry}).encode()
    (tmp_path / "file").write_bytes(len(header).to_bytes(8, "little") + header + b"1234")
    with pytest.raises(FileError, match="not a readable safetensors file"):
        files.map_tensors(tmp_path / "file", None)


@pytest.mark.parametrize("data", [b"", b"123", b"\xff" * 8, (4).to_bytes(8, "little") + b"null"])
def test_a_file_without_a_header_cannot_be_mapped(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "file").write_bytes(data)
    with pytest.raises(FileError, match="restore it from a copy"):
        files.map_tensors(tmp_path / "file", None)


def fill_with(**contents: bytes) -> Callable[[Path], None]:
    def fill(folder: Path) -> None:
        for name, data in contents.items():
            (folder / name).write_bytes(data)

    return fill


def test_a_published_folder_gives_back_what_was_put_in(tmp_path: Path) -> None:
    files.publish_folder(tmp_path / "a", fill_with(x=b"one", y=b""))
    files.publish_folder(tmp_path / "a", fill_with(x=b"two"))
    assert dict(files.verified_files(tmp_path / "a")) == {"x": b"two"}
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_folder_whose_filling_fails_is_not_there(tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        (folder / "x").write_bytes(b"half")
        raise KeyError("broken")

    files.publish_folder(tmp_path / "a", fill_with(x=b"before"))
    with pytest.raises(KeyError):
        files.publish_folder(tmp_path / "a", fail)
    assert dict(files.verified_files(tmp_path / "a")) == {"x": b"before"}
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("manifest", [b"", b"{}", b"[1]", b'{"files":{"x":3}}', b'{"files": {}}', b"\xff"])
def test_a_manifest_that_is_not_ours_is_refused(tmp_path: Path, manifest: bytes) -> None:
    files.publish_folder(tmp_path / "a", fill_with(x=b"one"))
    (tmp_path / "a" / "manifest.json").write_bytes(manifest)
    with pytest.raises(FileError):
        list(files.verified_files(tmp_path / "a"))


@pytest.mark.parametrize("text", ["NaN", "[1e999]", "9" * 5000, "[" * 100_000, '"\\ud800'])
def test_json_that_only_python_would_take_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(FileError, match="not valid JSON"):
        files.read_json(tmp_path / "run.json")


def test_a_pipe_is_refused_instead_of_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "run.json")
    with pytest.raises(FileError, match="not a regular file"):
        files.read_json(tmp_path / "run.json")


def test_a_folder_that_could_not_be_filled_leaves_the_old_one(tmp_path: Path) -> None:
    files.place_folder(tmp_path / "model", lambda part: files.write_atomic(part / "a", b"old"))

    def fail(part: Path) -> None:
        files.write_atomic(part / "a", b"new")
        raise OSError(28, "No space left on device")

    with pytest.raises(FileError, match="No space left"):
        files.place_folder(tmp_path / "model", fail)
    assert (tmp_path / "model" / "a").read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of what is brought to the disk, in order."""
    names: list[str] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        names.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    return names


def test_files_written_together_are_synced_once_each_and_only_at_the_end(tmp_path: Path, synced: list[str]) -> None:
    (tmp_path / "log").write_text("a line\n")
    with files.synced_together() as together:
        together.add(tmp_path / "log")
        files.write_atomic(tmp_path / "a", b"1")
        files.write_atomic(tmp_path / "a", b"2")
        with files.synced_together():
            files.write_atomic(tmp_path / "b", b"3")
        files.place_folder(tmp_path / "made", lambda part: files.write_atomic(part / "c", b"4"))
        assert synced == []
    assert synced == ["log", "a", "b", "c", tmp_path.name, "made"]
    files.write_atomic(tmp_path / "d", b"5")
    assert len(synced) == 6 + 2


def test_files_that_could_not_all_be_written_are_not_synced(tmp_path: Path, synced: list[str]) -> None:
    def fill(part: Path) -> None:
        files.write_atomic(part / "a", b"1")
        files.write_atomic(part / "a" / "b", b"1")

    with pytest.raises(FileError, match="cannot write"), files.synced_together():
        fill(tmp_path)
    assert synced == []
    files.write_atomic(tmp_path / "b", b"2")
    assert len(synced) == 2


def test_a_placed_folder_is_on_the_disk_before_it_has_its_name(tmp_path: Path, synced: list[str]) -> None:
    def fill(part: Path) -> None:
        files.write_atomic(part / "a", b"1")
        (part / "b").write_bytes(b"2")

    files.place_folder(tmp_path / "made", fill)
    assert (sorted(synced[:2]), synced[2:]) == (["a", "b"], [".made.part", tmp_path.name])


def test_temporary_files_are_not_synced(tmp_path: Path, synced: list[str]) -> None:
    with files.unsynced():
        files.write_json(tmp_path / "a.json", {})
        files.publish_folder(tmp_path / "made", lambda part: files.write_atomic(part / "c", b"4"))
    assert synced == []
    assert dict(files.verified_files(tmp_path / "made")) == {"c": b"4"}
