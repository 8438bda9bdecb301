"""Finished runs in one small file for version control, with the study's description: it reads as a study folder."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from sparsebert.errors import FileError
from sparsebert.files import synced_together, unsynced, write_atomic, write_json
from sparsebert.studies.record_stores import open_records, record_file
from sparsebert.studies.run_record import files_of, record_of
from sparsebert.studies.runs import RESULT, Run


def write_record(run: Run, made: Path, into: Path) -> bool:
    """Record the finished run in the folder `made`; False: it was recorded before."""
    store = record_file(into)
    return not store.names(run.id) and store.add(record_of(run, made))


def recorded_files(records: Path, run_id: str) -> set[str]:
    """Names of the files that a record gives back; none where there is no record."""
    return open_records(records).names(run_id)


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
            write_json(Path(place) / "study.json", study)
        yield Path(place)
