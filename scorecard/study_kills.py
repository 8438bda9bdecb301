"""kill -9 of a whole study at random moments: it goes on, repeats nothing that is finished, and ends alike.

Run: python -m scorecard.study_kills FOLDER [--study all] [--kills 10] [--workers 2] [--seed 0]
"""

import argparse
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sparsebert import draws
from sparsebert.files import sha256_of_file

PROJECT = Path(__file__).resolve().parents[1]
# Empty or about the clock; everything else in a run folder must be the same bytes.
_FREE = {".lock", "timing.json"}
_LONGEST_MOMENT = 0.4  # seconds between the last run that was counted and a kill


@dataclass(frozen=True)
class Spent:
    """By a command and its workers."""

    wall: float  # seconds
    processor: float  # seconds

    def __str__(self) -> str:
        return f"{self.processor:.0f} s of processor time, {self.wall:.0f} s by the clock"


@dataclass(frozen=True)
class Disturbed:
    """What a study that was killed went through."""

    finished: list[int]  # runs at each kill
    repeated: list[str]  # runs that were made again though they were finished
    different: list[str]  # files that are not those of the undisturbed study


def start(words: Sequence[str]) -> "subprocess.Popen[bytes]":
    environment = {**os.environ, "PYTHONPATH": str(PROJECT / "src"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "sparsebert", *words]
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def finish(words: Sequence[str]) -> Spent:
    """Run a command to its end."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    process = start(words)
    _, errors = process.communicate()
    assert process.returncode == 0, errors.decode()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Spent(time.monotonic() - started, processor)


def disturb(words: Sequence[str], out: Path, calm: Path, *, kills: int, seed: int) -> Disturbed:
    """Run a study in `out` with so many kills on the way, and compare it with the one in `calm`."""
    draw = draws.generator(seed, "tests/kills")
    seen: dict[str, tuple[int, int]] = {}
    finished = []
    for count in sorted(draw.integers(0, len(_results(calm)) - 1, kills).tolist()):
        _kill_after([*words, "--out", str(out)], out, count, float(draw.uniform(0, _LONGEST_MOMENT)))
        found = _results(out)
        seen |= {name: _written(path) for name, path in found.items() if name not in seen}
        finished.append(len(found))
    finish([*words, "--out", str(out)])
    results, files, expected = _results(out), _files(out), _files(calm)
    repeated = [name for name, written in seen.items() if _written(results[name]) != written]
    different = [name for name in sorted(files.keys() | expected.keys()) if files.get(name) != expected.get(name)]
    return Disturbed(finished, repeated, different)


def _kill_after(words: Sequence[str], out: Path, finished: int, moment: float) -> None:
    """Kill a study when so many runs are finished, and a moment later than that; its workers end by themselves."""
    process = start(words)
    while process.poll() is None and len(_results(out)) < finished:
        time.sleep(0.005)
    time.sleep(moment)
    process.send_signal(signal.SIGKILL)
    process.communicate()


def _results(out: Path) -> dict[str, Path]:
    return {path.parent.name: path for path in out.glob("runs/*/result.json")}


def _written(path: Path) -> tuple[int, int]:
    """A file that is written again is another one, at another time."""
    status = path.stat()
    return status.st_ino, status.st_mtime_ns


def _files(out: Path) -> dict[str, str]:
    paths = (path for path in out.glob("runs/**/*") if path.is_file() and path.name not in _FREE)
    return {str(path.relative_to(out)): sha256_of_file(path) for path in paths}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--study", default="all")
    arguments.add_argument("--kills", type=int, default=10)
    arguments.add_argument("--workers", default="2")
    arguments.add_argument("--seed", type=int, default=0)
    given = arguments.parse_args()
    words, calm = ["study", given.study, "--scale", "smoke", "--workers", given.workers], given.folder / "calm"
    study = finish([*words, "--out", str(calm)])
    report = finish(["report", str(calm), "--out", str(given.folder / "report.html")])
    found = disturb(words, given.folder / "disturbed", calm, kills=given.kills, seed=given.seed)
    lines = [
        f"study: {study}",
        f"report: {report}",
        f"killed with {', '.join(map(str, found.finished))} of {len(_results(calm))} runs finished",
        f"runs made again though finished: {len(found.repeated)}",
        f"files that differ, of {len(_files(calm))}: {len(found.different)}",
    ]
    sys.stdout.write("\n".join(lines) + "\n")
    sys.exit(bool(found.repeated or found.different))


if __name__ == "__main__":
    main()
