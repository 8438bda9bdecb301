"""S5: the whole test suite where every connection beyond this machine fails."""

import os
import re
import subprocess
import sys
from pathlib import Path

from scorecard import shim
from scorecard.row import Figures, Row, Trial, require

_PROJECT = Path(__file__).resolve().parents[1]


def suite(trial: Trial) -> Figures:
    log = trial.folder / "connections"
    names = {**os.environ, shim.NO_NETWORK: str(log)}
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", "--timeout", "1200"]
    done = subprocess.run(command, cwd=_PROJECT, env=names, capture_output=True, text=True, check=False)
    lines = done.stdout.strip().splitlines()
    last = lines[-1:]
    failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
    require(done.returncode == 0, f"the suite ended with {done.returncode}: {' '.join([*last, *failed])}")
    tried = log.read_text().splitlines() if log.exists() else []
    require(not tried, f"{len(tried)} times something tried to leave this machine, first {tried[:1]}")
    passed = re.search(r"(\d+) passed", last[0])
    return {"passed": float(passed[1]) if passed else 0.0}


ROWS = [
    Row(
        "S5",
        "the whole test suite with the network cut off",
        "passes; no connection but loopback",
        1,
        suite,
        unit="runs",
        words=lambda figures: f"{figures[0]['passed']:.0f} tests passed",
    )
]
