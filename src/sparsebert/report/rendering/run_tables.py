"""What was run: settings beside the paper's, counts and costs by stage, and every run in one table."""

from collections.abc import Iterator, Mapping
from typing import Any

from sparsebert.errors import FileError
from sparsebert.files import read_json
from sparsebert.progress import duration
from sparsebert.report import paper
from sparsebert.report.judging.endpoints import endpoints_of
from sparsebert.report.rendering.tables import Cell, Row, Table
from sparsebert.studies.results import Study, StudyRun, finite
from sparsebert.tasks import GLUE, TASKS

_GROUPS = {"GLUE": GLUE, **{TASKS[task].title: (task,) for task in ("swag", "squad1", "squad2")}}
# Rows of the paper's table of settings, and the name each has in run.json.
_NAMES = {
    "Batch size": "batch_size",
    "Weight decay": "weight_decay",
    "Warm-up share": "warmup",
    "Learning rate decay": "schedule",
    "Epochs": "num_epochs",
    "Learning rate": "learning_rate",
}


def settings_table(study: Study) -> Table:
    """The table of the paper's appendix, beside what our fine-tuning runs used."""
    used = [
        [(run.id, _used(run)) for run in study.finished("finetune") if run.task in tasks] for tasks in _GROUPS.values()
    ]
    return Table(
        "settings",
        "Settings of fine-tuning",
        "The paper chose the best of the listed values on the development set.",
        tuple(_GROUPS),
        tuple(
            Row(title, tuple(_setting(found, _NAMES[title], said) for found, said in zip(used, printed, strict=True)))
            for title, printed in paper.SETTINGS.items()
        ),
    )


def _setting(found: list[tuple[str, dict[str, Any]]], name: str, printed: str) -> Cell:
    """Every value that was used, each with the first run that used it."""
    seen: dict[str, str] = {}
    for id_, settings in found:
        if (value := settings.get(name)) is not None:
            seen.setdefault(f"{value:g}" if isinstance(value, float) else str(value), id_)
    return Cell(", ".join(seen) or None, printed, None, tuple(seen.values()))


def read_settings(run: StudyRun) -> Mapping[str, Any]:
    """run.json, or nothing where it is missing or not an object."""
    try:
        found = read_json(run.path / "run.json")
    except FileError:
        return {}
    return found if isinstance(found, dict) else {}


def _flat(value: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by their last name, whichever part of run.json they stand in."""
    flat: dict[str, Any] = {}
    for name, inner in value.items():
        if isinstance(inner, Mapping):
            flat |= {key: found for key, found in _flat(inner).items() if key not in flat}
        else:
            flat[name] = inner
    return flat


def _used(run: StudyRun) -> dict[str, Any]:
    """Settings of a run; the share of warm-up from its steps where it is not said."""
    settings = _flat(read_settings(run))
    steps, warmup = finite(settings.get("num_steps")), finite(settings.get("warmup_steps"))
    if "warmup" not in settings and steps and warmup is not None:
        settings["warmup"] = float(f"{warmup / steps:.2g}")
    return settings


def facts(study: Study) -> Iterator[tuple[str, str]]:
    """A few lines about the study for the top of the page."""
    done = [run for run in study.runs if run.result is not None]
    yield "Study", study.name
    yield "Scale", study.scale
    yield "Protocol", study.protocol
    yield "Runs", f"{len(done)} of {len(study.runs)} finished"
    yield "Seeds", _seeds(done)
    for name in ("model", "corpus", "data"):
        if study.base.get(name):
            yield name.capitalize(), str(study.base[name])
    seconds = sum(run.seconds or 0.0 for run in done)
    if seconds:
        yield "Computing time", duration(seconds)
    yield from _environment(done)


def _seeds(done: list[StudyRun]) -> str:
    """How many; studies may have different numbers of them."""
    of_study: dict[str, set[int]] = {}
    for run in done:
        for name in run.studies or ("",):
            of_study.setdefault(name, set()).add(run.seed)
    counts = sorted({len(seeds) for seeds in of_study.values()}) or [0]
    return str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}, by study"


def _environment(done: list[StudyRun]) -> Iterator[tuple[str, str]]:
    described = next((found for run in done if (found := read_settings(run).get("environment"))), None)
    if not isinstance(described, dict):
        return
    versions = described.get("versions")
    if isinstance(versions, dict):
        yield "Versions", ", ".join(f"{name} {value}" for name, value in sorted(versions.items()))
    if described.get("device"):
        threads = described.get("threads", "?")
        yield "Device", f"{described['device']}, {threads} thread{'' if threads == 1 else 's'}"


def stages_table(study: Study) -> Table:
    """How many runs of each stage there are, and what they took."""
    rows = []
    for stage in dict.fromkeys(run.stage for run in study.runs):
        runs = [run for run in study.runs if run.stage == stage]
        done = [run for run in runs if run.result is not None]
        minutes = sum(run.seconds or 0.0 for run in done) / 60
        cells = (Cell(float(len(done)), digits=0), Cell(float(len(runs)), digits=0), Cell(minutes, digits=1))
        rows.append(Row(stage, cells))
    caption = "Each run is one training or one pattern; equal runs are made once."
    columns = ("Finished", "Planned", "Minutes")
    return Table("stages-run", "Runs by stage", caption, columns, tuple(rows), has_paper=False)


def runs_table(study: Study) -> Table:
    """Every run."""
    rows, endpoints = [], endpoints_of(study)
    for run in study.runs:
        own = (run.id,)
        state = "finished" if run.result is not None else "not finished"
        percent = None if run.sparsity is None else 100 * run.sparsity
        cells = (
            Cell(run.stage),
            Cell(TASKS[run.task].title if run.task in TASKS else run.task or ""),
            Cell(float(run.seed), digits=0),
            Cell(run.score, runs=own, digits=2),
            *(Cell(one.of(run), runs=own, digits=one.digits) for one in endpoints),
            Cell(percent, runs=own, digits=1),
            Cell(state, runs=own),
        )
        rows.append(Row(run.label, cells))
    return Table(
        "runs",
        "All runs",
        "The last column opens the run folder.",
        ("Stage", "Task", "Seed", "Score", *(one.words for one in endpoints), "Sparsity %", "State"),
        tuple(rows),
        has_paper=False,
    )
