"""A study folder as the report sees it: study.json, and what each run folder says."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

from sparsebert.errors import FileError
from sparsebert.files import read_json

_STAGE_ORDER = ("base", "importance", "search", "prune", "adapt", "finetune", "score")


@dataclass(frozen=True)
class Run:
    """One run: what was asked of it, and its result once it has one."""

    id: str
    stage: str
    label: str
    condition: Mapping[str, Any]
    path: Path  # its folder
    studies: tuple[str, ...] = ()
    depends: tuple[str, ...] = ()
    result: Mapping[str, Any] | None = None  # None: not finished
    seconds: float | None = None  # of computing, where timing.json says so

    @property
    def seed(self) -> int:
        return _whole(self.condition.get("seed"), 0)

    @property
    def task(self) -> str | None:
        task = self.condition.get("task")
        return None if task is None else str(task)

    @property
    def metrics(self) -> Mapping[str, Any]:
        metrics = (self.result or {}).get("metrics")
        return metrics if isinstance(metrics, Mapping) else {}

    @property
    def score(self) -> float | None:
        """In points, of the task it was scored on."""
        return number((self.result or {}).get("score")) if self.task else None

    @property
    def loss(self) -> float | None:
        """Held-out MLM loss in nats."""
        return number(self.metrics.get("mlm_loss"))

    @property
    def sparsity(self) -> float | None:
        return number((self.result or {}).get("sparsity"))

    def matches(self, **wanted: Any) -> bool:
        """Whether its condition has these values; a field that the condition lacks counts as None."""
        return all(self.condition.get(name) == value for name, value in wanted.items())


@dataclass(frozen=True, eq=False)
class Study:
    """All runs of a study folder, in the order of study.json; a study equals only itself, so that it can be a key."""

    name: str
    scale: str
    folder: Path
    runs: tuple[Run, ...]
    base: Mapping[str, Any] = field(default_factory=dict)
    records: Path | None = None  # where the runs lie for a reader, if they were unpacked from records

    def place_of(self, run: Run) -> Path:
        """What a reader opens to see more of a run: its folder or its record."""
        if self.records is None:
            return run.path
        return self.records / f"{run.id}.json" if self.records.is_dir() else self.records

    @property
    def looks(self) -> int:
        """How often its claims are judged, with more seeds each time."""
        sizes = self.base.get("sizes")
        return max(1, _whole(sizes.get("looks"), 1)) if isinstance(sizes, dict) else 1

    @property
    def is_evidence(self) -> bool:
        """Smoke runs are a few steps long: they show that everything runs, and nothing else."""
        return self.scale != "smoke"

    def finished(self, *stages: str, study: str | None = None, **wanted: Any) -> Iterator[Run]:
        """Runs with a result, of these stages, used by this study, with this condition."""
        for run in self.runs:
            used = study is None or not run.studies or study in run.studies
            if run.result is not None and (not stages or run.stage in stages) and used and run.matches(**wanted):
                yield run

    def left(self, study: str, *, scores: bool) -> int:
        """Runs that this study still has to make; without scores: of those that are not fine-tuned on tasks."""
        return sum(
            run.result is None and study in run.studies and (scores or run.stage not in ("finetune", "score"))
            for run in self.runs
        )

    def scored(self, study: str | None = None, **wanted: Any) -> list[Run]:
        """Runs with a score; of a model that was both tuned and scored apart, the later stage counts."""
        return [run for run in _scored(self, study) if run.matches(**wanted)]

    def by_id(self, id_: str) -> Run | None:
        return next((run for run in self.runs if run.id == id_), None)

    def ancestors(self, run: Run) -> Iterator[Run]:
        """The runs it came from, nearest first."""
        waiting, seen = list(run.depends), set()
        while waiting:
            found = self.by_id(waiting.pop(0))
            if found is not None and found.id not in seen:
                seen.add(found.id)
                waiting += found.depends
                yield found

    def file_of(self, run: Run, name: str) -> Path | None:
        """That file of the run, or of the nearest run it came from; a fine-tuned model got its pattern elsewhere."""
        for one in (run, *self.ancestors(run)):
            if (one.path / name).is_file():
                return one.path / name
        return None


@lru_cache(maxsize=16)  # every table and figure asks, and the answer is the same
def _scored(study: Study, used_by: str | None) -> tuple[Run, ...]:
    latest: dict[tuple[Any, ...], Run] = {}
    for run in study.finished("finetune", "score", study=used_by):
        if run.score is None:
            continue
        key = (run.label, *(str(run.condition[name]) for name in sorted(run.condition)))
        if key not in latest or _STAGE_ORDER.index(run.stage) >= _STAGE_ORDER.index(latest[key].stage):
            latest[key] = run
    return tuple(latest.values())


def load_study(folder: Path, records: Path | None = None) -> Study:
    """Read study.json and every finished run; a run that is not finished stays, without a result."""
    path = Path(folder) / "study.json"
    if not path.is_file():
        raise FileError(f"{folder} holds no study.json; expected a folder written by `sparsebert study`")
    about = read_json(path)
    if not isinstance(about, dict) or not isinstance(about.get("runs"), list):
        raise FileError(f"{path} is not a study: expected an object with a list of runs")
    if about.get("version") != 1:
        raise FileError(f"{path} has version {about.get('version')!r}; this report reads version 1")
    runs = tuple(_read_run(Path(folder), entry, path) for entry in about["runs"])
    base = about.get("base")
    return Study(
        name=str(about.get("name", "study")),
        scale=str(about.get("scale", "smoke")),
        folder=Path(folder),
        runs=runs,
        base=base if isinstance(base, dict) else {},
        records=records,
    )


def _read_run(folder: Path, entry: Any, path: Path) -> Run:
    if not isinstance(entry, dict) or not isinstance(entry.get("id"), str) or entry.get("stage") not in _STAGE_ORDER:
        raise FileError(f"{path} lists a run without an id or with an unknown stage: {str(entry)[:80]}")
    place = PurePosixPath(str(entry.get("folder", f"runs/{entry['id']}")))
    if place.is_absolute() or ".." in place.parts:
        raise FileError(f"{path} places run {entry['id']} at {place}, outside the study; expected a folder below it")
    where = folder / place
    result = read_json(where / "result.json") if (where / "result.json").is_file() else None
    if result is not None and not isinstance(result, dict):
        raise FileError(f"{where / 'result.json'} is not a JSON object; remove it and run the study again")
    condition = entry.get("condition")
    return Run(
        id=entry["id"],
        stage=entry["stage"],
        label=str(entry.get("label", entry["id"])),
        condition=condition if isinstance(condition, dict) else {},
        path=where,
        studies=tuple(str(name) for name in entry.get("studies", ())),
        depends=tuple(str(name) for name in entry.get("depends", ())),
        result=result,
        seconds=_seconds(where / "timing.json"),
    )


def _seconds(path: Path) -> float | None:
    if not path.is_file():
        return None
    timing = read_json(path)
    return number(timing.get("seconds")) if isinstance(timing, dict) else None


def number(value: Any) -> float | None:
    """A finite number, or None for anything else that a file may hold."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < float("inf") else None


def _whole(value: Any, otherwise: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else otherwise
