"""Which run next: hand an engine what is ready, by phase and longest way to go first, until nothing is left."""

import signal
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from sparsebert.errors import RunInterruptedError, StudyError
from sparsebert.progress import Watcher
from sparsebert.studies.jobs import Job, JobResult, StudyPaths
from sparsebert.studies.runs import Run

_SHOWN_ERRORS = 3


class Engine(Protocol):
    """Makes runs somewhere."""

    def slots(self) -> int:
        """How many jobs it can hold at once."""

    def submit(self, job: Job) -> None: ...

    def wait(self) -> JobResult:
        """The next job that ends."""

    def close(self, *, at_once: bool = False) -> None:
        """Let the workers go; at once: ask those that work to stop after a checkpoint."""


class Scheduler:
    """The runs that are left, who waits for whom, and how long each may take."""

    def __init__(
        self,
        runs: Sequence[Run],
        seconds: Mapping[str, float],
        paths: StudyPaths,
        checkpoint_every: int,
        phases: Mapping[str, Any] | None = None,  # run id to something that orders: smaller comes first
    ) -> None:
        self.runs = {run.id: run for run in runs}
        self.phases = phases or dict.fromkeys(self.runs, 0)
        self.paths, self.checkpoint_every, self.seconds = paths, checkpoint_every, dict(seconds)
        self.waits_for = {run.id: {one for one in run.depends if one in self.runs} for run in runs}
        self.urgency = self._urgencies()
        self.running: dict[str, float] = {}
        self.failed: dict[str, str] = {}
        self.spent = self.planned = 0.0  # seconds of finished runs: as they were, as they had been estimated

    def run(
        self,
        engine: Engine,
        watcher: Watcher,
        deadline: float | None = None,
        ended: Callable[[Run], object] = lambda run: None,
    ) -> None:
        """Make everything; raises at the end if some runs failed, or when time is up. ended: told of every run."""
        watcher.start(0, len(self.runs))
        try:
            while self.waits_for or self.running:
                in_time = deadline is None or time.time() < deadline
                if in_time:
                    self._submit_ready(engine, deadline)
                if not self.running:
                    break
                outcome = engine.wait()
                self._record(outcome, in_time=deadline is None or time.time() < deadline)
                ended(self.runs[outcome.run_id])
                done = len(self.runs) - len(self.waits_for) - len(self.running)
                watcher.step(done, self._words(outcome.run_id), self.seconds_left(engine.slots()))
        finally:
            watcher.stop()
        self._tell()

    def seconds_left(self, slots: int) -> float:
        """By the estimates, corrected by how the runs so far compared with theirs."""
        left = sum(self.seconds[one] for one in [*self.waits_for, *self.running])
        return left * self._correction() / max(1, slots)

    def _correction(self) -> float:
        # The first runs also load torch; until a tenth of the work is done, the estimates have a say.
        say = 0.1 * sum(self.seconds.values())
        return (self.spent + say) / (self.planned + say)

    def _submit_ready(self, engine: Engine, deadline: float | None) -> None:
        ready = [one for one, others in self.waits_for.items() if not others]
        ready.sort(key=lambda one: (self.phases[one], -self.urgency[one]))
        for one in ready[: max(0, engine.slots() - len(self.running))]:
            del self.waits_for[one]
            self.running[one] = time.monotonic()
            engine.submit(Job(self.runs[one], self.paths, deadline, self.checkpoint_every))

    def _record(self, outcome: JobResult, *, in_time: bool) -> None:
        self.spent += time.monotonic() - self.running.pop(outcome.run_id)
        self.planned += self.seconds[outcome.run_id]
        if outcome.is_interrupted and in_time:
            raise RunInterruptedError(f"the study was stopped: {outcome.error}", signal.SIGTERM)
        if outcome.is_interrupted:
            self.waits_for[outcome.run_id] = set()
            return
        if outcome.error is None:
            for others in self.waits_for.values():
                others.discard(outcome.run_id)
            return
        self.failed[outcome.run_id] = outcome.error
        self._give_up_after(outcome.run_id)

    def _give_up_after(self, run_id: str) -> None:
        """What depends on a failed run cannot be made."""
        for one in [one for one, others in self.waits_for.items() if run_id in others]:
            if self.waits_for.pop(one, None) is not None:
                self._give_up_after(one)

    def _tell(self) -> None:
        if self.failed:
            shown = [
                f"{self._words(one)} (runs/{one}): {error}" for one, error in list(self.failed.items())[:_SHOWN_ERRORS]
            ]
            raise StudyError(
                f"{len(self.failed)} runs failed, and what depends on them is left out; {'; '.join(shown)}"
            )
        if self.waits_for:
            raise StudyError(
                f"time is up with {len(self.waits_for)} runs left; the same command goes on from here, and "
                "--max-hours says for how long"
            )

    def _words(self, run_id: str) -> str:
        run = self.runs[run_id]
        return f"{run.stage} {run.condition.label(run.stage)}"

    def _urgencies(self) -> dict[str, float]:
        """Seconds from the start of a run to the end of the longest chain behind it."""
        urgency = {one: self.seconds[one] for one in self.runs}
        for one in reversed(self.runs):
            for other in self.waits_for[one]:
                urgency[other] = max(urgency[other], self.seconds[other] + urgency[one])
        return urgency
