"""kill -9 of a whole study at random moments: it goes on, repeats nothing that is finished, and ends alike.

SPARSEBERT_KILLS and SPARSEBERT_WORKERS say how many kills and workers there are; one each unless they are set.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from sparsebert import draws
from sparsebert.files import canonical_json
from sparsebert.studies.progress import Lines
from sparsebert.studies.study import StudyConfig, planned, run_study

PROJECT = Path(__file__).resolve().parents[2]
KILLS = int(os.environ.get("SPARSEBERT_KILLS", "1"))
WORKERS = os.environ.get("SPARSEBERT_WORKERS", "1")
SIZES: dict[str, Any] = {"stage_sparsities": [0.9], "stage_tasks": ["rte"], "base_steps": 20, "checkpoint_every": 1}


def _start(out: Path) -> "subprocess.Popen[bytes]":
    words = [sys.executable, "-m", "sparsebert", "study", "stages", "--out", str(out), "--workers", WORKERS]
    sizes = [f"{name}={canonical_json(value)}" for name, value in SIZES.items()]
    words += ["--device-flops", "1e10", *(word for size in sizes for word in ("--set", size))]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT / "src"), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def _finish(out: Path) -> None:
    process = _start(out)
    _, errors = process.communicate(timeout=500)
    assert process.returncode == 0, errors.decode()


def _undisturbed(out: Path) -> dict[str, bytes]:
    with planned(StudyConfig("stages", out, workers=1, flops_per_second=1e10, sizes=SIZES)) as plan:
        run_study(plan, Lines("undisturbed"))
    return {name: path.read_bytes() for name, path in _results(out).items()}


def _results(out: Path) -> dict[str, Path]:
    return {path.parent.name: path for path in out.glob("runs/*/result.json")}


def _kill_after(out: Path, finished: int, moment: float) -> None:
    """Kill the study when so many runs are finished, and a moment later than that; its workers end by themselves."""
    process = _start(out)
    while process.poll() is None and len(_results(out)) < finished:
        time.sleep(0.005)
    time.sleep(moment)
    process.send_signal(signal.SIGKILL)
    process.communicate()


@pytest.mark.long
def test_a_study_that_is_killed_goes_on_and_ends_as_an_undisturbed_one(tmp_path: Path) -> None:
    calm = _undisturbed(tmp_path / "calm")
    disturbed = tmp_path / "disturbed"
    draw = draws.generator(int(os.environ.get("SPARSEBERT_KILL_SEED", "0")), "tests/kills")
    seen: dict[str, int] = {}
    for finished in sorted(draw.integers(0, len(calm) - 1, KILLS).tolist()):
        _kill_after(disturbed, finished, float(draw.uniform(0, 0.4)))
        seen |= {name: path.stat().st_mtime_ns for name, path in _results(disturbed).items() if name not in seen}
    _finish(disturbed)
    results = _results(disturbed)
    assert {name: path.read_bytes() for name, path in results.items()} == calm
    assert seen == {name: results[name].stat().st_mtime_ns for name in seen}, "a finished run was made again"
