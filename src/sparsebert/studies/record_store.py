"""Finished runs in one small file for version control, with the study's description: it reads as a study folder.

Older versions wrote a folder with a JSON file a run, which can still be read.
"""

import contextlib
import json
import os
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sparsebert.errors import FileError
from sparsebert.files import canonical_json, read_json, synced_together, unsynced, write_atomic, write_json
from sparsebert.studies.journal import ByteRange, Journal
from sparsebert.studies.record_format import files_of, record_of, require_record
from sparsebert.studies.runs import RESULT, STUDY, Run

_STUDY = "study"


class RecordFile:
    """A journal with an entry a run, and one for each time the study was described otherwise; the last holds."""

    def __init__(self, path: Path) -> None:
        if path.is_dir():
            raise FileError(
                f"{path} is a folder, and records are written to one file; give --record a file such as "
                f"{path.name}.jsonl.zst (an older folder of records can still be read, with --finished)"
            )
        self.path, self.journal = path, Journal(path)
        self._forget()

    def _forget(self) -> None:
        self._places: dict[str, ByteRange] = {}
        self._names: dict[str, set[str]] = {}
        self._study: Any = None
        self._end = 0  # of the last whole entry
        self._file: tuple[int, int] | None = None  # which file that was

    def _refresh(self) -> None:
        """Read what was appended since the last time, by whomever."""
        if not self.path.exists():
            self._forget()
            return
        about = self.path.stat()
        if self._file != (about.st_dev, about.st_ino) or about.st_size < self._end:
            self._forget()
            self._file = about.st_dev, about.st_ino
        if about.st_size > self._end:
            for place, entry in self.journal.entries(self._end):
                self._take(entry, place)

    def _take(self, entry: dict[str, Any], place: ByteRange) -> None:
        if _STUDY in entry:
            self._study = entry[_STUDY]
        else:
            run_id = str(entry.get("id"))
            record = require_record(entry, run_id, self.path)
            self._places[run_id] = place
            self._names[run_id] = {*record["files"], *record["packed"]}
        self._end = place.end

    def ids(self) -> list[str]:
        self._refresh()
        return sorted(self._places)

    def read(self, run_id: str) -> dict[str, Any] | None:
        """The record of a run; None: there is none."""
        self._refresh()
        place = self._places.get(run_id)
        return None if place is None else require_record(self.journal.read(place), run_id, self.path)

    def names(self, run_id: str) -> set[str]:
        """Names of the files that a record gives back; none where there is no record."""
        self._refresh()
        return self._names.get(run_id, set())

    def study(self) -> Any:
        """What study.json said of the study; None: nothing."""
        self._refresh()
        return self._study

    def add(self, record: dict[str, Any]) -> bool:
        """Append a record; False: the run was recorded before."""
        return self._append(record, lambda: record["id"] in self._places)

    def add_study(self, description: Any) -> bool:
        """Append a description of the study; False: it was described like this before."""
        as_read = json.loads(canonical_json(description))  # tuples are lists there
        return self._append({_STUDY: as_read}, lambda: self._study == as_read)

    def _append(self, entry: dict[str, Any], is_there: Callable[[], bool]) -> bool:
        with self.journal.appending() as appender:
            self._refresh()
            if is_there():
                return False
            self._take(entry, appender.append(entry, self._end))
        return True


class RecordFolder:
    """A JSON file a run, and study.json; read as the file is."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def ids(self) -> list[str]:
        return sorted(path.stem for path in self.path.glob("*.json") if path.stem != _STUDY)

    def read(self, run_id: str) -> dict[str, Any] | None:
        path = self.path / f"{run_id}.json"
        return require_record(read_json(path), run_id, path) if path.is_file() else None

    def names(self, run_id: str) -> set[str]:
        record = self.read(run_id)
        return set() if record is None else {*record["files"], *record["packed"]}

    def study(self) -> Any:
        path = self.path / f"{_STUDY}.json"
        return read_json(path) if path.is_file() else None


def open_records(path: Path) -> RecordFile | RecordFolder:
    """The records at a path, for reading."""
    return RecordFolder(path) if path.is_dir() else record_file(path)


def record_file(path: Path) -> RecordFile:
    """The file of records at a path, for reading and appending; it is made with the first record."""
    return _record_file(os.path.abspath(path))  # noqa: PTH100 - a key; nothing is looked up


@lru_cache(maxsize=8)  # a study asks for every file of every run
def _record_file(path: str) -> RecordFile:
    return RecordFile(Path(path))


def write_record(run: Run, made: Path, into: Path) -> bool:
    """Record the finished run in the folder `made`; False: it was recorded before."""
    store = record_file(into)
    return not store.names(run.id) and store.add(record_of(run, made))


def restore(records: Path, run_id: str, into: Path) -> None:
    """The files of a record, as the run left them."""
    record = open_records(records).read(run_id)
    if record is None:
        raise FileError(f"{records} holds no record of run {run_id}; make the run again")
    files = dict(files_of(record, records))
    with synced_together():
        for name, data in files.items():
            if name != RESULT:
                write_atomic(into / name, data)
    # The result last: it says that the run is done.
    if RESULT in files:
        write_atomic(into / RESULT, files[RESULT])


@contextlib.contextmanager
def unpacked(path: Path) -> Iterator[Path]:
    """What is at the path as a study folder: itself, or for the time being its records as the run folders they were."""
    records = None if (path / "runs").is_dir() or not path.exists() else open_records(path)
    study = None if records is None else records.study()
    if records is None or study is None:
        yield path
        return
    with TemporaryDirectory() as place:
        with unsynced():
            for run_id in records.ids():
                restore(path, run_id, Path(place) / "runs" / run_id)
            write_json(Path(place) / STUDY, study)
        yield Path(place)
