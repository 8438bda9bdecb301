"""Runs rows trial by trial in forked processes, and keeps what became of each outside the tree, so that it resumes."""

import datetime
import json
import os
import shutil
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path

from scorecard.row import FailedTrialError, Outcome, Row, Trial


class State:
    """The state folder: NAME.jsonl holds the outcomes of a row, NAME/ what its trials share."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def outcomes(self, row: Row) -> list[Outcome]:
        """One a trial, the last that was written, in order."""
        path = self.folder / f"{row.name}.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        found: dict[int, Outcome] = {}
        for line in lines:
            if line.endswith("}"):  # a kill may have left half a line
                outcome = Outcome(**json.loads(line))
                found[outcome.trial] = outcome
        return [found[trial] for trial in sorted(found)]

    def add(self, row: Row, outcome: Outcome) -> None:
        with (self.folder / f"{row.name}.jsonl").open("a") as stream:
            stream.write(json.dumps(outcome.as_json()) + "\n")

    def failed_before(self, row: Row) -> int:
        """Trials that have failed at some time and were run again."""
        path = self.folder / f"{row.name}.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        failed = {found["trial"] for found in map(json.loads, lines) if not found["passed"]}
        return len(failed & {outcome.trial for outcome in self.outcomes(row) if outcome.passed})

    def day(self, row: Row) -> str:
        """On which the last trial of a row ended; empty where none did."""
        path = self.folder / f"{row.name}.jsonl"
        when = datetime.datetime.fromtimestamp(path.stat().st_mtime, tz=datetime.UTC) if path.exists() else None
        return when.date().isoformat() if when else ""

    def forget(self, row: Row) -> None:
        """As if no trial of the row had been run."""
        (self.folder / f"{row.name}.jsonl").unlink(missing_ok=True)
        shutil.rmtree(self.shared(row), ignore_errors=True)

    def full(self, row: Row) -> int:
        """How many trials make the whole row."""
        is_ready = (self.shared(row) / ".ready").exists()
        return row.count(self.shared(row)) if row.count is not None and is_ready else row.trials

    def shared(self, row: Row) -> Path:
        return self.folder / row.name


def run_row(row: Row, state: State, *, scale: float = 1.0, fast: bool = False, again: bool = False) -> None:
    """Run what is left of a row. scale: of its trials. fast: only those of the test suite. again: failed ones too."""
    if (fast and not row.fast) or not _set_up(row, state):
        return
    wanted = row.fast if fast else range(max(1, round(state.full(row) * scale)))
    done = {outcome.trial for outcome in state.outcomes(row) if outcome.passed or not again}
    left = [trial for trial in wanted if trial not in done]
    started = time.monotonic()
    for number, chunk in enumerate(_chunks(left, row.chunk), start=1):
        _in_child(lambda chunk=chunk: _run_chunk(row, state, chunk))
        ended = {outcome.trial for outcome in state.outcomes(row)}
        for trial in chunk:
            if trial not in ended:
                state.add(row, Outcome(trial, False, "its process died"))
        _say(f"{row.name}: {min(number * row.chunk, len(left))} of {len(left)}, {time.monotonic() - started:.0f} s")


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")


def _chunks(trials: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    for start in range(0, len(trials), size):
        yield trials[start : start + size]


def _set_up(row: Row, state: State) -> bool:
    folder, ready = state.shared(row), state.shared(row) / ".ready"
    if ready.exists():
        return True
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)

    def work() -> None:
        row.setup(folder)
        ready.touch()

    if _in_child(work) == 0:
        return True
    state.add(row, Outcome(0, False, "the row could not be set up"))
    return False


def _run_chunk(row: Row, state: State, trials: Sequence[int]) -> None:
    for number in trials:
        folder = state.folder / f"{row.name}.{number}.trial"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        state.add(row, _run_trial(row, Trial(number, state.shared(row).resolve(), folder.resolve())))
        shutil.rmtree(folder, ignore_errors=True)


def _run_trial(row: Row, trial: Trial) -> Outcome:
    try:
        return Outcome(trial.number, True, figures=row.run(trial) or {})
    except FailedTrialError as error:
        return Outcome(trial.number, False, str(error)[:2000])
    except BaseException:
        return Outcome(trial.number, False, traceback.format_exc()[-2000:])


def _in_child(work: object) -> int:
    """Run something in a forked child, so that this process stays as it is: everything imported, nothing run."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()  # type: ignore[operator]
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
