"""A run that is killed at any moment, any number of times, ends with the bits of an undisturbed one."""

import json
import os
import pathlib
import random
import resource
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from sparsebert.errors import RunInterruptedError
from sparsebert.training import fit
from tests.faults.processes import die, ended, forked
from tests.training.cases import outcome, short_fit, small_pretraining

torch.set_num_threads(1)


def train(folder: Path) -> None:
    fit(small_pretraining(), short_fit(), folder)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("undisturbed")
    train(folder)
    assert set(outcome(folder)) == {"metrics.jsonl", "result.json", "model/model.safetensors", "pattern.safetensors"}
    return folder


def counted(action: Callable[[int], None]) -> None:
    """Call `action` with a running number before every call by which a checkpoint or another file gets to the disk."""
    number = 0

    def wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            nonlocal number
            number += 1
            action(number)
            return function(*args, **kwargs)

        return run

    os.fsync, os.replace = wrapped(os.fsync), wrapped(os.replace)  # type: ignore[assignment]
    os.open, os.unlink = wrapped(os.open), wrapped(os.unlink)  # type: ignore[assignment]
    pathlib.Path.rename = wrapped(pathlib.Path.rename)  # type: ignore[method-assign]
    pathlib.Path.mkdir = wrapped(pathlib.Path.mkdir)  # type: ignore[method-assign]
    shutil.rmtree = wrapped(shutil.rmtree)  # type: ignore[assignment]


def killed_while_writing(folder: Path, at: int, log: Path) -> int:
    def work() -> None:
        counted(lambda number: die() if number == at else None)
        train(folder)

    return ended(forked(work, log))


def killed_after(folder: Path, seconds: float, log: Path, number: signal.Signals = signal.SIGKILL) -> int:
    child = forked(lambda: train(folder), log)
    time.sleep(seconds)
    os.kill(child, number)
    return ended(child)


def writes_of_a_run(tmp_path: Path) -> int:
    def work() -> None:
        total = 0

        def count(number: int) -> None:
            nonlocal total
            total = number

        counted(count)
        train(tmp_path / "counting")
        (tmp_path / "count").write_text(json.dumps(total))

    assert ended(forked(work, tmp_path / "log")) == 0
    return int(json.loads((tmp_path / "count").read_text()))


def check_kills_while_writing(undisturbed: Path, tmp_path: Path, kills: int) -> None:
    """Runs are killed before a random one of their writes, and started again, until there were enough kills."""
    total = writes_of_a_run(tmp_path)
    assert total > 50
    draw, log = random.Random(0), tmp_path / "log"
    killed = finished = 0
    while killed < kills or finished == 0:
        folder, moment = tmp_path / f"run-{finished}", draw.randrange(1, total + 1) if killed < kills else 0
        code = killed_while_writing(folder, moment, log)
        assert code in (0, -signal.SIGKILL), (moment, log.read_text())
        killed += code != 0
        if code == 0:
            finished += 1
            assert outcome(folder) == outcome(undisturbed), moment
            assert not [path for path in folder.rglob("*") if path.suffix in (".part", ".old")]


def check_kills_at_any_time(undisturbed: Path, folder: Path, kills: int) -> None:
    """One run is killed again and again, after a little longer each time it survives too little."""
    draw = random.Random(1)
    log = folder.with_suffix(".log")
    for trial in range(kills):
        killed_after(folder, draw.uniform(0.0, 0.4) + 0.01 * trial, log)
    assert ended(forked(lambda: train(folder), log)) == 0, log.read_text()
    assert outcome(folder) == outcome(undisturbed)


def test_killed_while_writing_a_file(undisturbed: Path, tmp_path: Path) -> None:
    check_kills_while_writing(undisturbed, tmp_path, 4)


def test_killed_at_any_time(undisturbed: Path, tmp_path: Path) -> None:
    check_kills_at_any_time(undisturbed, tmp_path / "run", 4)


@pytest.mark.long
def test_killed_while_writing_a_file_at_many_moments(undisturbed: Path, tmp_path: Path) -> None:
    check_kills_while_writing(undisturbed, tmp_path, 30)


@pytest.mark.long
def test_killed_at_any_time_many_times(undisturbed: Path, tmp_path: Path) -> None:
    for run in range(10):
        check_kills_at_any_time(undisturbed, tmp_path / f"run-{run}", 3)


def check_terminations(undisturbed: Path, tmp_path: Path, trials: int) -> None:
    draw = random.Random(2)
    for trial in range(trials):
        folder, log = tmp_path / f"run-{trial}", tmp_path / f"log-{trial}"
        codes = []
        # Before fit() listens a signal still ends the process at once; afterwards only with a checkpoint.
        while not codes or codes[-1] != 0:
            seconds = draw.uniform(0.05, 0.5) * (1 + len(codes))  # longer each time, so that a slow machine ends too
            codes.append(killed_after(folder, seconds, log, signal.SIGTERM))
        assert set(codes) <= {0, 143, -signal.SIGTERM}, (codes, log.read_text())
        assert outcome(folder) == outcome(undisturbed)


def test_asked_to_end(undisturbed: Path, tmp_path: Path) -> None:
    check_terminations(undisturbed, tmp_path, 2)


@pytest.mark.long
def test_asked_to_end_many_times(undisturbed: Path, tmp_path: Path) -> None:
    check_terminations(undisturbed, tmp_path, 10)


def test_a_disk_that_takes_no_more_ends_the_run_and_costs_no_bits(undisturbed: Path, tmp_path: Path) -> None:
    folder, log = tmp_path / "run", tmp_path / "log"

    def work() -> None:
        train_some(folder)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
        train(folder)

    def train_some(folder: Path) -> None:
        objective = small_pretraining()
        forward = objective.forward

        def stop_in_time(step: int, micro: int) -> Any:
            if step == 4:
                os.kill(os.getpid(), signal.SIGTERM)
            return forward(step, micro)

        objective.forward = stop_in_time  # type: ignore[method-assign]
        with pytest.raises(RunInterruptedError):
            fit(objective, short_fit(), folder)

    assert ended(forked(work, log)) == 2, log.read_text()
    assert "cannot write" in log.read_text()
    assert sorted(path.name for path in (folder / "checkpoints").iterdir()) == ["step-00000003", "step-00000005"]
    assert ended(forked(lambda: train(folder), log)) == 0, log.read_text()
    assert outcome(folder) == outcome(undisturbed)
