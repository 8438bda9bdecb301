"""L1: one long search beside a loaded machine; memory, open files and losses are watched."""

import json
import multiprocessing
import os
import time
from collections.abc import Sequence
from pathlib import Path

from scorecard.commands import start
from scorecard.row import Figures, Row, Trial, require
from sparsebert.text import prepare_corpus
from tests.faults.processes import ended

_SECONDS = float(os.environ.get("SPARSEBERT_SOAK_SECONDS", "3600"))
_OTHERS = int(os.environ.get("SPARSEBERT_SOAK_OTHERS", os.cpu_count() or 1))  # 0 where the machine has other work
_WARM = 0.1  # share of the time after which memory should have settled
_MOST_GROWTH = 0.01
_SHORT = 20  # steps of the undisturbed run that losses are compared with
_SHARED = Path(__file__).resolve().parents[2] / "shared" / "data" / "text" / "wikipedia.txt.gz"


def set_up(shared: Path) -> None:
    """Real text where it lies beside the project, else the built-in one."""
    source = str(_SHARED) if _SHARED.exists() else "builtin:python-docs"
    prepare_corpus([source], shared / "corpus", model="scratch:tiny", train_vocab=8000, workers=1)


def _search(corpus: Path, out: Path, steps: int) -> list[object]:
    common = ["--model", "scratch:tiny", "--corpus", corpus, "--steps", steps, "--length", 64, "--batch-size", 8]
    return ["search", *common, "--sparsity", 0.9, "--set", "checkpoint_every=50", "--out", out]


def _load() -> None:
    """Another process that wants the whole processor."""
    while True:
        sum(range(10**6))


def soaked(trial: Trial) -> Figures:
    corpus, out, log = trial.shared / "corpus", trial.folder / "run", trial.folder / "log"
    steps = 10**6  # more than there is time for: the rates fall with the share of steps done, as good as not at all
    child = start(_search(corpus, out, steps), log)
    forked = multiprocessing.get_context("fork")
    others = [forked.Process(target=_load, daemon=True) for _ in range(_OTHERS)]
    for other in others:
        other.start()
    samples, loads = [], []
    try:
        began = time.monotonic()
        while time.monotonic() - began < _SECONDS:
            time.sleep(max(1.0, _SECONDS / 200))
            loads.append(os.getloadavg()[0])
            samples.append((time.monotonic() - began, _memory(child), len(list(Path(f"/proc/{child}/fd").iterdir()))))
        os.kill(child, 15)
        require(ended(child) == 143, f"the search ended otherwise: {log.read_text()[-300:]}")
    finally:
        for other in others:
            other.terminate()
    settled = [sample for sample in samples if sample[0] > _WARM * _SECONDS]
    half = len(settled) // 2
    growth = _mean(settled[half:], 1) / _mean(settled[:half], 1) - 1
    files = max(sample[2] for sample in settled) - settled[0][2]
    require(growth < _MOST_GROWTH, f"memory grew by {growth:.2%}")
    require(files <= 0, f"{files} more files are open than at the beginning")
    _compare_losses(trial, out, steps)
    load = sum(loads) / len(loads)
    return {"growth": growth, "steps": _steps(out), "minutes": _SECONDS / 60, "load": load}


def _compare_losses(trial: Trial, out: Path, steps: int) -> None:
    """The first steps of a run beside which nothing else ran."""
    calm = trial.folder / "calm"
    child = start(_search(trial.shared / "corpus", calm, steps), trial.folder / "log")
    while _steps(calm) < _SHORT:
        time.sleep(0.05)
    os.kill(child, 15)
    ended(child)
    pairs = zip(_losses(out), _losses(calm), strict=False)
    require(all(one == other for one, other in pairs), "losses differ from those of an undisturbed run")


def _losses(out: Path) -> list[float]:
    return [json.loads(line)["loss"] for line in (out / "metrics.jsonl").read_text().splitlines()]


def _steps(out: Path) -> int:
    path = out / "metrics.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def _memory(process: int) -> int:
    """Resident bytes."""
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def _mean(samples: Sequence[tuple[float, int, int]], field: int) -> float:
    return sum(sample[field] for sample in samples) / max(1, len(samples))


ROWS = [
    Row(
        "L1",
        "a long search on real text while the machine is loaded (`make soak`)",
        "memory flat (growth under 1 %), no file-handle growth, loss as undisturbed",
        1,
        soaked,
        set_up,
        unit="runs",
        words=lambda figures: (
            f"{figures[0]['minutes']:.0f} minutes, {figures[0]['steps']:,.0f} steps, load average "
            f"{figures[0]['load']:.1f}; "
            f"memory grew by {figures[0]['growth']:.2%} from the first half to the second"
        ),
    )
]
