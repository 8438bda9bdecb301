"""A run folder: run.json says what runs there, metrics.jsonl what happened, result.json that it is done."""

import contextlib
import json
import logging
import platform
import re
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from sparsebert.errors import ConfigError, FileError
from sparsebert.files import canonical_json, file_errors, read_bytes, read_json, sweep, write_atomic, write_json
from sparsebert.locks import locked
from sparsebert.training.config import FREE_FIELDS, FitConfig

logger = logging.getLogger(__name__)

_MOST_THREADS = 4096
# Hashes that not every kind of run wrote down in earlier versions: a run that has none goes on.
_LATER = frozenset({"weights_sha256", "teacher_sha256"})

Write = Callable[[Mapping[str, Any]], None]  # takes a line of metrics


class RunFolder:
    """One run's folder; every file in it but metrics.jsonl is written whole or not at all."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.metrics = folder / "metrics.jsonl"
        self.checkpoints = folder / "checkpoints"
        self._description: dict[str, Any] | None = None  # what run.json will hold

    def claimed(self) -> contextlib.AbstractContextManager[object]:
        """Hold the folder: a second process would write over the first."""
        taken = FileError(f"another process is running in {self.folder}; wait for it or use another folder")
        return locked(self.folder / ".lock", taken)

    def begin(self, config: FitConfig, settings: Mapping[str, Any], ranks: int) -> int:
        """Hold a resumed run to its run.json; the number of threads to compute with.

        A new run gets its run.json from record(): a start that fails must not bind the next one to its settings.
        """
        sweep(self.folder)
        description = {"settings": dict(settings), "fit": config.as_json(), "environment": environment(ranks)}
        path = self.folder / "run.json"
        if not path.exists():
            if (self.folder / "result.json").exists():
                raise FileError(
                    f"{self.folder} holds a result.json but no run.json, as runs of several seeds leave it; use "
                    "another folder for a single run"
                )
            self._description = description
            return torch.get_num_threads()
        found = read_json(path)
        if not isinstance(found, dict) or not isinstance(found.get("fit"), dict):
            raise FileError(f"{path} does not describe a run; use another folder")
        _refuse_changes(path, found, description)
        return _compare_environment(path, found.get("environment", {}), description["environment"])

    def record(self) -> None:
        """Write run.json where there is none: a first step worked, and what follows belongs to these settings."""
        if self._description is not None:
            write_json(self.folder / "run.json", self._description)
            self._description = None

    def result(self) -> dict[str, Any] | None:
        """result.json, which is written last of all; None: the run is not finished."""
        path = self.folder / "result.json"
        if not path.exists():
            return None
        found = read_json(path)
        if not isinstance(found, dict):
            raise FileError(f"{path} holds a {type(found).__name__}, not a result; remove it to finish the run again")
        return found

    def rewind_metrics(self, step: int) -> None:
        """Drop the lines beyond a step, and the half line that a kill may have left."""
        lines = read_bytes(self.metrics).splitlines(keepends=True) if self.metrics.exists() else []
        kept = lines[:step]
        if len(kept) < step or not all(line.endswith(b"\n") for line in kept):
            logger.warning("%s has lost lines before step %d; the run goes on without them", self.metrics, step)
            kept = [line for line in kept if line.endswith(b"\n")]
        if kept != lines:
            write_atomic(self.metrics, b"".join(kept))

    @contextlib.contextmanager
    def metrics_writer(self) -> Iterator[Write]:
        """Appends one JSON object a step."""
        # Unbuffered: a line that could not be written must not be tried again while the error is on its way.
        with self.metrics.open("ab", buffering=0) as stream:

            def write(line: Mapping[str, Any]) -> None:
                data = json.dumps(line, allow_nan=False).encode() + b"\n"
                with file_errors("write", self.metrics):
                    while data:
                        data = data[stream.write(data) :]

            yield write

    def add_timing(self, session: Mapping[str, float], earlier: list[Any]) -> None:
        """timing.json: the only file with clock values; one entry for each time the command ran."""
        sessions = [*earlier, dict(session)]
        seconds = sum(float(entry["seconds"]) for entry in sessions)
        write_json(self.folder / "timing.json", {"seconds": seconds, "sessions": sessions})

    def earlier_sessions(self) -> list[Any]:
        path = self.folder / "timing.json"
        if not path.exists():
            return []
        try:
            sessions = list(read_json(path)["sessions"])
            _ = [float(entry["seconds"]) for entry in sessions]
        except (FileError, KeyError, TypeError, ValueError) as error:
            logger.warning("%s cannot be read (%s); the clock begins anew", path, error)
            return []
        return sessions


def environment(ranks: int) -> dict[str, Any]:
    """What the bits of a result depend on besides the configuration."""
    versions = {name: _version(name) for name in ("sparsebert", "torch", "transformers", "numpy")}
    return {
        "versions": versions | {"python": platform.python_version()},
        "threads": torch.get_num_threads(),
        "ranks": ranks,
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _flat(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flat(inner, f"{name}.{key}" if name else str(key))
    else:
        yield name, value


def _refuse_changes(path: Path, found: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Names what was chosen otherwise before what follows from it: settings, then fit's own, then hashes."""
    parts: list[tuple[str, Any, Any]] = []
    for part in ("settings", "fit"):
        before, after = (dict(_flat(json.loads(canonical_json(source.get(part, {}))))) for source in (found, now))
        parts += [(name, before.get(name), after.get(name)) for name in sorted(before.keys() | after.keys())]
    for name, before_value, after_value in sorted(parts, key=lambda one: _is_hash(one[2])):
        if name in _LATER and before_value is None:
            continue
        if name in FREE_FIELDS or name.startswith("where.") or _is_same_folder(before_value, after_value):
            continue
        if before_value != after_value:
            raise ConfigError(
                f"{name} is {before_value!r} in {path} but {after_value!r} now; "
                "give it the same value to resume that run, or use another folder"
            )


def _is_same_folder(one: Any, other: Any) -> bool:
    """Whether both name one folder, as `found` and `./found/` do."""
    return isinstance(one, str) and isinstance(other, str) and Path(one) == Path(other) and Path(one).is_dir()


def _is_hash(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) is not None


def _compare_environment(path: Path, found: Mapping[str, Any], now: Mapping[str, Any]) -> int:
    before, after = dict(_flat(found)), dict(_flat(now))
    for name in sorted(before.keys() | after.keys()):
        if name != "threads" and before.get(name) != after.get(name):
            logger.warning(
                "%s says %s %s, now it is %s: the run goes on, but its last bits may differ",
                path, name, before.get(name), after.get(name),
            )  # fmt: skip
    # Sums come out in another order with another number of threads; so a run keeps the number it began with.
    threads = before.get("threads", after["threads"])
    if type(threads) is not int or not 1 <= threads <= _MOST_THREADS:
        raise FileError(f"{path} says threads {threads!r}; expected a number from 1 to {_MOST_THREADS}")
    if threads != after["threads"]:
        logger.info("computing with %d threads, as when the run began", threads)
    return threads
