"""A study folder read back: what each run stands for, and what came of it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, get_args

from sparsebert.errors import FileError
from sparsebert.files import read_json
from sparsebert.settings import declared, fits, refuse_unknown
from sparsebert.studies.runs import RESULT, STUDY, Condition, Stage


@dataclass(frozen=True)
class StudyRun:
    """One run: what was asked of it, and its result once it has one."""

    id: str
    stage: Stage
    label: str
    condition: Condition
    path: Path  # its folder
    studies: tuple[str, ...] = ()
    result: Mapping[str, Any] | None = None  # None: not finished
    seconds: float | None = None  # of computing, where timing.json says so

    @property
    def seed(self) -> int:
        return self.condition.seed

    @property
    def task(self) -> str | None:
        return self.condition.task

    @property
    def metrics(self) -> Mapping[str, Any]:
        metrics = (self.result or {}).get("metrics")
        return metrics if isinstance(metrics, Mapping) else {}

    @property
    def score(self) -> float | None:
        """In points, of the task it was scored on."""
        return finite((self.result or {}).get("score")) if self.task else None

    @property
    def loss(self) -> float | None:
        """Held-out MLM loss in nats."""
        return finite(self.metrics.get("mlm_loss"))

    @property
    def distance(self) -> float | None:
        """1 - cosine of its embeddings to the dense model's, of held-out text, where the dense model taught it."""
        return finite(self.metrics.get("embedding_distance"))

    @property
    def sts(self) -> float | None:
        """Mean over the STS sets, in points."""
        found = (self.result or {}).get("sts")
        return finite(found.get("mean")) if isinstance(found, Mapping) else None

    @property
    def sparsity(self) -> float | None:
        return finite((self.result or {}).get("sparsity"))

    def file(self, name: str) -> Path | None:
        """That file of its folder, if it is there."""
        return self.path / name if (self.path / name).is_file() else None


@dataclass(frozen=True, eq=False)
class Study:
    """All runs of a study folder, in the order of study.json; a study equals only itself, so that it can be a key."""

    name: str
    scale: str
    folder: Path
    runs: tuple[StudyRun, ...]
    base: Mapping[str, Any] = field(default_factory=dict)
    records: Path | None = None  # where the runs lie for a reader, if they were unpacked from records

    def place_of(self, run: StudyRun) -> Path:
        """What a reader opens to see more of a run: its folder or its record."""
        if self.records is None:
            return run.path
        return self.records / f"{run.id}.json" if self.records.is_dir() else self.records

    @property
    def looks(self) -> int:
        """How often its claims are judged, with more seeds each time."""
        return self._count("looks", 1)

    @property
    def resamples(self) -> int:
        """Of the bootstrap that judges its claims; studies of before it could be chosen had 4,999."""
        return self._count("resamples", 4_999)

    @property
    def protocol(self) -> str:
        """mlm, as all studies of before there was another, or distill."""
        return "distill" if self._size("protocol") == "distill" else "mlm"

    def _count(self, name: str, otherwise: int) -> int:
        found = self._size(name)
        return max(1, found) if isinstance(found, int) else otherwise

    def _size(self, name: str) -> Any:
        sizes = self.base.get("sizes")
        return sizes.get(name) if isinstance(sizes, Mapping) else None

    @property
    def is_evidence(self) -> bool:
        """Smoke runs are a few steps long: they show that everything runs, and nothing else."""
        return self.scale != "smoke"

    def finished(self, *stages: Stage, study: str | None = None, **wanted: Any) -> Iterator[StudyRun]:
        """Runs with a result, of these stages, used by this study, whose condition has these values."""
        for run in self.runs:
            is_used = study is None or not run.studies or study in run.studies
            is_wanted = all(getattr(run.condition, name) == value for name, value in wanted.items())
            if run.result is not None and (not stages or run.stage in stages) and is_used and is_wanted:
                yield run

    def scored(self, study: str | None = None, **wanted: Any) -> list[StudyRun]:
        """Runs with a task's score."""
        return [run for run in self.finished("finetune", study=study, **wanted) if run.score is not None]

    def left(self, study: str, *, scores: bool) -> int:
        """Runs that this study still has to make; without scores: of those that are not fine-tuned on tasks."""
        return sum(
            run.result is None and study in run.studies and (scores or run.stage != "finetune") for run in self.runs
        )


def load_study(folder: Path, records: Path | None = None) -> Study:
    """Read study.json and every finished run; a run that is not finished stays, without a result."""
    path = Path(folder) / STUDY
    if not path.is_file():
        raise FileError(f"{folder} holds no {STUDY}; expected a folder written by `sparsebert study`")
    about = read_json(path)
    if not isinstance(about, dict) or not isinstance(about.get("runs"), list):
        raise FileError(f"{path} is not a study: expected an object with a list of runs")
    if about.get("version") != 1:
        raise FileError(f"{path} has version {about.get('version')!r}; this report reads version 1")
    base = about.get("base")
    return Study(
        name=str(about.get("name", "study")),
        scale=str(about.get("scale", "smoke")),
        folder=Path(folder),
        runs=tuple(_read_run(Path(folder), entry, path) for entry in about["runs"]),
        base=base if isinstance(base, dict) else {},
        records=records,
    )


def _read_run(folder: Path, entry: Any, path: Path) -> StudyRun:
    if not isinstance(entry, dict) or not isinstance(entry.get("id"), str) or entry.get("stage") not in get_args(Stage):
        raise FileError(f"{path} lists a run without an id or with an unknown stage: {str(entry)[:80]}")
    place = PurePosixPath(str(entry.get("folder", f"runs/{entry['id']}")))
    if place.is_absolute() or ".." in place.parts:
        raise FileError(f"{path} places run {entry['id']} at {place}, outside the study; expected a folder below it")
    where = folder / place
    return StudyRun(
        id=entry["id"],
        stage=entry["stage"],
        label=str(entry.get("label", entry["id"])),
        condition=_read_condition(entry.get("condition"), path),
        path=where,
        studies=tuple(str(name) for name in entry.get("studies", ())),
        result=_read_object(where / RESULT),
        seconds=finite((_read_object(where / "timing.json") or {}).get("seconds")),
    )


def _read_condition(found: Any, path: Path) -> Condition:
    """A field that is missing has its default; one of another type, or that this version does not know, is refused."""
    if not isinstance(found, dict) or "family" not in found:
        raise FileError(f"{path} lists a run whose condition names no family: {str(found)[:80]}")
    known = declared(Condition)
    for name, value in found.items():
        refuse_unknown(name, known, FileError, f"{path} has a condition with an unknown field")
        if not fits(value, known[name].kind):
            raise FileError(f"{path} has a condition whose {known[name].fault(value)}")
    return Condition(**found)


def _read_object(path: Path) -> Mapping[str, Any] | None:
    """None where there is no such file."""
    found = read_json(path) if path.is_file() else None
    if found is not None and not isinstance(found, dict):
        raise FileError(f"{path} is not a JSON object; remove it and run the study again")
    return found


def finite(value: Any) -> float | None:
    """A finite number, or None for anything else that a file may hold."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < float("inf") else None
