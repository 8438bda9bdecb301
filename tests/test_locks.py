import multiprocessing
import os
import signal
from pathlib import Path

import pytest

from sparsebert.errors import FileError, StudyError
from sparsebert.locks import locked


def _hold(path: Path, ready: "multiprocessing.synchronize.Event") -> None:
    with locked(path):
        ready.set()
        signal.pause()


@pytest.mark.parametrize("name", ["made/.lock", "."])
def test_a_second_process_is_refused_and_a_killed_one_blocks_no_one(tmp_path: Path, name: str) -> None:
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    holder = context.Process(target=_hold, args=(tmp_path / name, ready), daemon=True)
    holder.start()
    assert ready.wait(60)
    with pytest.raises(StudyError, match="held by another"), locked(tmp_path / name, StudyError("held by another")):
        pass
    assert holder.pid is not None
    os.kill(holder.pid, signal.SIGKILL)
    holder.join()
    with locked(tmp_path / name, StudyError("held by another")):
        pass


def test_what_goes_wrong_inside_is_not_taken_for_the_lock(tmp_path: Path) -> None:
    with pytest.raises(BlockingIOError), locked(tmp_path / "lock", StudyError("held by another")):
        raise BlockingIOError


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FileError, match=r"cannot write .*lock"), locked(tmp_path / "file" / "lock"):
        pass
