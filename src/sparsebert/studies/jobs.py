"""What a worker is handed: a run, and where things lie."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sparsebert.studies.runs import Run

RESULT = "result.json"


@dataclass(frozen=True)
class Place:
    """Where a study's runs and its sources lie."""

    out: Path  # the study folder; new runs go to out/runs
    model: str
    corpus: Path | None
    data: Path | None
    results: Path | None = None  # another study folder whose finished runs count

    def folder(self, run_id: str) -> Path:
        """Where a run is made."""
        return self.out / "runs" / run_id

    def found(self, run_id: str) -> Path:
        """Where a finished run lies: here, or in the other study folder."""
        own = self.folder(run_id)
        if self.results is None or (own / RESULT).is_file():
            return own
        other = self.results / "runs" / run_id
        return other if (other / RESULT).is_file() else own

    def is_finished(self, run_id: str) -> bool:
        return (self.found(run_id) / RESULT).is_file()


@dataclass(frozen=True)
class Job:
    """One run to make."""

    run: Run
    place: Place
    deadline: float | None = None  # seconds since the epoch at which it stops after a checkpoint; None: never
    checkpoint_every: int = 50  # steps


# Makes a run, from its job to result.json.
Maker = Callable[[Job], None]
