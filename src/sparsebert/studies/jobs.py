"""What a worker is handed and gives back: a run, where things lie, how it went."""

from dataclasses import dataclass
from pathlib import Path

from sparsebert.studies.record_store import open_records
from sparsebert.studies.runs import RESULT, Run


@dataclass(frozen=True)
class StudyPaths:
    """Where a study's runs and its sources lie."""

    out: Path  # the study folder; runs are made in out/runs
    model: str
    corpus: Path | None
    data: Path | None
    finished: Path | None = None  # finished runs to take over: another study folder, or records
    sts: Path | None = None  # folder of STS sets

    def folder(self, run_id: str) -> Path:
        return self.out / "runs" / run_id

    def is_finished(self, run_id: str) -> bool:
        """Here, or among the runs to take over."""
        return self.has(run_id, RESULT)

    def has(self, run_id: str, name: str) -> bool:
        """Whether a file of a finished run is there, or can be had from its record."""
        recorded = self.finished is not None and name in open_records(self.finished).names(run_id)
        return self.file(run_id, name).exists() or recorded

    def file(self, run_id: str, name: str) -> Path:
        """A file or folder that a finished run left: here, else in the other study folder."""
        own = self.folder(run_id) / name
        if own.exists() or self.finished is None:
            return own
        other = self.finished / "runs" / run_id / name
        return other if other.exists() else own


@dataclass(frozen=True)
class Job:
    """One run to make."""

    run: Run
    paths: StudyPaths
    deadline: float | None = None  # seconds since the epoch at which it stops after a checkpoint; None: never
    checkpoint_every: int = 50  # steps
    started: float = 0.0  # by time.perf_counter() of the process that makes it


@dataclass(frozen=True)
class JobResult:
    """How a job went."""

    run_id: str
    error: str | None = None  # why it could not be made
    is_interrupted: bool = False  # it was asked to stop, and can go on
