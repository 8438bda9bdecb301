"""A study folder: study.json says which runs there are; what is finished is read from their folders."""

import shutil
from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sparsebert.errors import ConfigError, FileError, StudyError
from sparsebert.files import read_json, sweep, write_json
from sparsebert.locks import locked
from sparsebert.studies.graph import Graph
from sparsebert.studies.grids import name_of, names_in
from sparsebert.studies.jobs import StudyPaths
from sparsebert.studies.record_store import record_file, restore
from sparsebert.studies.runs import RESULT, STUDY, Run

VERSION = 1
_HELD = ("scale", "protocol", "model", "model_sha256", "corpus_sha256", "sts_sha256", "threads")
_HEAVY = ("model", "checkpoints", "data", ".lock", RESULT)


def claimed(out: Path) -> AbstractContextManager[object]:
    """Hold the study folder: two of them at once would make the same runs."""
    return locked(out / ".lock", StudyError(f"another process runs a study in {out}; wait for it or use another --out"))


def names_with_earlier(name: str, out: Path) -> list[str]:
    """The studies asked for, and those that the folder holds already: one folder may hold several."""
    asked = names_in(name)
    path = out / STUDY
    if not path.is_file():
        return asked
    found = read_json(path)
    if not isinstance(found, dict) or found.get("version") != VERSION:
        raise FileError(f"{path} does not describe a study of this version of sparsebert; use another --out")
    return names_in(name_of([*asked, *names_in(str(found["name"]))]))


def describe(graph: Graph, names: list[str]) -> dict[str, Any]:
    """study.json: a function of what was asked for, so the same command writes the same bytes."""
    scale = graph.scale
    return {
        "name": name_of(names),
        "scale": scale.name,
        "version": VERSION,
        "base": {**graph.sources.as_json(), "sizes": asdict(scale), "threads": graph.threads},
        "runs": [run.as_json(graph.studies[run.id]) for run in graph.runs.values()],
    }


def write_study(out: Path, description: dict[str, Any]) -> None:
    """Write study.json; a folder begun at another scale or with other sources is refused by name.

    Sizes may change: more seeds or tasks are more runs, and other steps are other runs beside those that are there.
    """
    path = out / STUDY
    if path.is_file():
        _refuse_another(read_json(path), description, path)
    write_json(path, description)


def record_study(records: Path, description: dict[str, Any]) -> None:
    """Describe the study among its records too; records of another study are refused in the same way."""
    store = record_file(records)
    found = store.study()
    if found is not None:
        _refuse_another(found, description, records)
    store.add_study(description)


def _refuse_another(found: Any, description: dict[str, Any], path: Path) -> None:
    before, now = (_held(one) for one in (found, description))
    for name in _HELD:
        if before.get(name) != now.get(name):
            raise ConfigError(
                f"{name} is {before.get(name)!r} in {path} but {now.get(name)!r} now; give the same to go on with that "
                "study, or use another --out and --record"
            )


def _held(described: Any) -> dict[str, Any]:
    base = described["base"]
    # Studies of before there was a second protocol say nothing of theirs.
    return {"scale": described["scale"], "protocol": base["sizes"].get("protocol", "mlm"), **base}


def take_finished(runs: Iterable[Run], paths: StudyPaths) -> int:
    """Bring in the small files of runs, all finished, that were finished elsewhere; how many were taken."""
    taken = 0
    for run in runs:
        own, result = paths.folder(run.id), paths.file(run.id, RESULT)
        if paths.finished is None or (own / RESULT).is_file():
            continue
        own.mkdir(parents=True, exist_ok=True)
        if result.is_file():
            _copy_small(result.parent, own)
        else:
            restore(paths.finished, run.id, own)
        taken += 1
    return taken


def _copy_small(source: Path, own: Path) -> None:
    for path in sorted(source.iterdir()):
        if path.is_file() and path.name not in _HEAVY:
            shutil.copyfile(path, own / path.name)
    # Last: its presence says that the run is done.
    write_json(own / RESULT, read_json(source / RESULT))


def runs_to_make(graph: Graph, paths: StudyPaths) -> list[Run]:
    """What is missing: runs without a result, and runs whose files those need and that are gone."""
    needed: set[str] = set()
    wanted: dict[str, set[str]] = {}
    for run in reversed(graph.runs.values()):
        lacks = any(not paths.has(run.id, name) for name in wanted.get(run.id, ()))
        if paths.is_finished(run.id) and not lacks:
            continue
        needed.add(run.id)
        for dependency in run.depends:
            wanted.setdefault(dependency, set()).update(_files_needed(run, dependency))
    return [run for run in graph.runs.values() if run.id in needed]


def _files_needed(run: Run, dependency: str) -> set[str]:
    """What a run reads of one it depends on."""
    is_read = dependency in (run.config.get("start"), run.config.get("teacher"))
    names = {"model/model.safetensors"} if is_read else set()
    pattern = run.config.get("pattern") or {}
    if pattern.get("run") == dependency:
        names.add("pattern.safetensors" if pattern["diagonal"] == "learned" else "gate.safetensors")
    return names | ({"gate.safetensors"} if run.stage == "prune" else set())


def make_ready(graph: Graph, missing: list[Run], paths: StudyPaths) -> None:
    """Remove result.json of runs that must be made again, so that they count as unfinished, and what a kill left."""
    again = {run.id for run in missing}
    for run in graph.runs.values():
        folder = paths.folder(run.id)
        if run.id not in again:
            tidy(run, folder)
        elif folder.is_dir():
            sweep(folder)
            (folder / RESULT).unlink(missing_ok=True)


def tidy(run: Run, folder: Path) -> None:
    """Remove what no one needs of a finished run: its checkpoints, and weights that nothing starts from.

    Those are the weights of a task that is scored, and of a search or importance run that itself started from the base:
    what was found there is tried on the base again. A search by distillation is one of them, for it trains no weights.
    """
    shutil.rmtree(folder / "checkpoints", ignore_errors=True)
    is_from_base = run.config.get("start") is not None or "objective" in run.config or "model" in run.config
    is_score = run.stage == "finetune" and not run.config.get("keeps_model")
    if is_score or (run.stage in ("search", "importance") and is_from_base):
        shutil.rmtree(folder / "model", ignore_errors=True)
