"""A journal that is killed, cut off, damaged, or written by two at once."""

import json
import multiprocessing
import os
import random
from pathlib import Path
from typing import Any

import pytest
import zstandard

from sparsebert.errors import FileError
from sparsebert.studies.journal import Journal

ENTRIES: list[dict[str, Any]] = [{"id": name, "text": f"{name} " * 40, "number": 0.1 + 0.2} for name in "abc"]


def append(path: Path, *entries: dict[str, Any]) -> None:
    journal = Journal(path)
    for entry in entries:
        with journal.appending() as appender:
            places = [place for place, _ in journal.entries()]
            appender.append(entry, places[-1].end if places else 0)


def entries(path: Path) -> list[dict[str, Any]]:
    return [entry for _, entry in Journal(path).entries()]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    append(tmp_path / "journal", *ENTRIES)
    return tmp_path / "journal"


def test_entries_come_back_in_order_and_by_their_place(path: Path) -> None:
    journal = Journal(path)
    found = list(journal.entries())
    assert [entry for _, entry in found] == ENTRIES
    assert [journal.read(place) for place, _ in found] == ENTRIES
    assert [entry for _, entry in journal.entries(found[0][0].end)] == ENTRIES[1:]


def test_equal_entries_give_equal_bytes_and_plain_lines(path: Path, tmp_path: Path) -> None:
    append(tmp_path / "other", *ENTRIES)
    assert (tmp_path / "other").read_bytes() == path.read_bytes()
    with path.open("rb") as stream:
        text = zstandard.ZstdDecompressor().stream_reader(stream, read_across_frames=True).read().decode()
    assert [json.loads(line)["id"] for line in text.splitlines()] == ["a", "b", "c"]


def test_cut_off_anywhere_every_earlier_entry_stays_and_the_next_one_fits(path: Path) -> None:
    data = path.read_bytes()
    ends = [place.end for place, _ in Journal(path).entries()]
    for size in range(len(data)):
        path.write_bytes(data[:size])
        whole = [entry for entry, end in zip(ENTRIES, ends, strict=True) if end <= size]
        assert entries(path) == whole
        append(path, *ENTRIES[len(whole) :])
        assert path.read_bytes() == data


def test_a_tail_that_has_a_size_but_no_bytes_is_passed_over(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data + bytes(50))
    assert entries(path) == ENTRIES
    append(path, ENTRIES[0])
    assert entries(path) == [*ENTRIES, ENTRIES[0]]


def test_a_flipped_bit_before_the_last_entry_is_never_taken_for_a_cut(path: Path) -> None:
    data, end = path.read_bytes(), list(Journal(path).entries())[1][0].end
    refused = 0
    for at in range(8 * end):
        damaged = bytearray(data)
        damaged[at // 8] ^= 1 << at % 8
        path.write_bytes(damaged)
        try:
            found = entries(path)
        except FileError:
            refused += 1
        else:
            assert found == ENTRIES, at  # a bit of the frame that means nothing
    assert refused > 0.95 * 8 * end


@pytest.mark.parametrize("line", [b"{}\n", b"[]\n", b'{"id":"a","sha256":"0"}\n', b"\xff\n", b"[" * 10_000, b"NaN"])
def test_a_line_that_was_not_written_here_is_refused(path: Path, line: bytes) -> None:
    path.write_bytes(path.read_bytes() + zstandard.compress(line))
    with pytest.raises(FileError, match="is damaged at byte"):
        entries(path)


def test_a_file_of_another_kind_is_refused_as_such(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("# Notes\n")
    with pytest.raises(FileError, match="is no file of records"):
        entries(tmp_path / "notes")


def test_an_entry_that_would_fill_the_memory_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sparsebert.studies.journal._MOST_BYTES", 10_000)
    path.write_bytes(zstandard.compress(bytes(20_000)))
    with pytest.raises(FileError, match="unpacks to more than"):
        entries(path)


def test_a_disk_that_is_full_leaves_the_journal_as_it_was(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, write = path.read_bytes(), os.pwrite

    def half(descriptor: int, left: bytes, at: int) -> int:
        if len(left) < 60:
            raise OSError(28, "No space left on device")
        return write(descriptor, left[: len(left) // 2], at)

    monkeypatch.setattr(os, "pwrite", half)
    with pytest.raises(FileError, match="No space left"):
        append(path, {"id": "d", "text": random.Random(0).randbytes(200).hex()})
    assert path.read_bytes() == data


def _append_many(path: Path, name: str) -> None:
    for number in range(15):
        append(path, {"id": f"{name}{number}"})


def test_two_writers_lose_nothing_of_each_other(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_append_many, args=(tmp_path / "journal", name)) for name in "ab"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    found = [entry["id"] for entry in entries(tmp_path / "journal")]
    assert sorted(found) == sorted(f"{name}{number}" for name in "ab" for number in range(15))
    for name in "ab":
        assert [one for one in found if one[0] == name] == [f"{name}{number}" for number in range(15)]
