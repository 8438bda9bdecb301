"""Engines of one machine: this process, or several that stay warm from run to run."""

import contextlib
import multiprocessing
import os
import signal
import threading
from collections import deque
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any

from sparsebert.studies.attempts import attempt
from sparsebert.studies.jobs import Job, JobResult

ATTEMPTS = 3  # of a run whose worker dies
_PATIENCE = 120.0  # seconds for a step and a checkpoint to end when a worker is asked to stop


class InProcess:
    """Makes one run at a time, here."""

    def __init__(self) -> None:
        self.jobs: deque[Job] = deque()

    def slots(self) -> int:
        return 1

    def submit(self, job: Job) -> None:
        self.jobs.append(job)

    def wait(self) -> JobResult:
        return attempt(self.jobs.popleft())

    def close(self, *, at_once: bool = False) -> None:
        self.jobs.clear()


@dataclass
class _WorkerProcess:
    process: SpawnProcess
    connection: "Connection[Any, Any]"
    job: Job | None = None
    attempts: int = 0


class Processes:
    """Worker processes that load torch once and then make run after run, each with its own threads."""

    def __init__(self, workers: int, threads: int) -> None:
        # Libraries read this when they load; without it every worker would start threads for all cores.
        self.environment = {"OMP_NUM_THREADS": str(threads)}
        self.workers = [self._hire() for _ in range(workers)]

    def slots(self) -> int:
        return len(self.workers)

    def submit(self, job: Job) -> None:
        worker = next(one for one in self.workers if one.job is None)
        worker.job, worker.attempts = job, 1
        self._send(worker)

    def wait(self) -> JobResult:
        """The next outcome; a worker that died is replaced, and its run tried again from its last checkpoint."""
        while True:
            busy = [one for one in self.workers if one.job is not None]
            ready = wait([one.connection for one in busy])
            for worker in busy:
                if worker.connection in ready:
                    outcome = self._outcome(worker)
                    if outcome is not None:
                        return outcome

    def _outcome(self, worker: _WorkerProcess) -> JobResult | None:
        job = worker.job
        assert job is not None
        try:
            outcome: JobResult = worker.connection.recv()
        except (EOFError, ConnectionError):
            worker.process.join()
            if worker.attempts >= ATTEMPTS:
                worker.job = None
                self._replace(worker)
                return JobResult(job.run.id, f"its worker died {ATTEMPTS} times (exit {worker.process.exitcode})")
            self._replace(worker)
            worker.attempts += 1
            self._send(worker)
            return None
        worker.job = None
        return outcome

    def _send(self, worker: _WorkerProcess) -> None:
        # A worker that died while idle is noticed here, or at the next wait.
        with contextlib.suppress(BrokenPipeError, ConnectionError):
            worker.connection.send(worker.job)

    def _replace(self, worker: _WorkerProcess) -> None:
        worker.connection.close()
        fresh = self._hire()
        worker.process, worker.connection = fresh.process, fresh.connection

    def _hire(self) -> _WorkerProcess:
        ours, theirs = multiprocessing.Pipe()
        process = multiprocessing.get_context("spawn").Process(target=_serve, args=(theirs,), daemon=True)
        before = {name: os.environ.get(name) for name in self.environment}
        os.environ.update(self.environment)
        try:
            process.start()
        finally:
            for name, value in before.items():
                os.environ.pop(name) if value is None else os.environ.__setitem__(name, value)
        theirs.close()
        return _WorkerProcess(process, ours)

    def close(self, *, at_once: bool = False) -> None:
        for worker in self.workers:
            if at_once and worker.process.is_alive():
                worker.process.terminate()
            with contextlib.suppress(OSError):
                worker.connection.send(None)
        for worker in self.workers:
            worker.process.join(_PATIENCE)
            if worker.process.is_alive():
                worker.process.kill()
            worker.connection.close()


def _serve(connection: "Connection[Any, Any]") -> None:
    """A worker: make what comes, until nothing comes or whoever sent it is gone."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # Ctrl-C reaches the whole group; while a run is trained, fit() turns it into a checkpoint.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while (job := connection.recv()) is not None:
        connection.send(attempt(job))


def _end_with_parent() -> None:
    """A study that was killed must not leave workers that hold its run folders."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)
