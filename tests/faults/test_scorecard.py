"""The fast part of the scorecard: the program itself, with a few trials of most rows."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import PROJECT


@pytest.mark.long
@pytest.mark.skipif(shutil.which("gcc") is None, reason="the fault shim is compiled with gcc, which is not there")
def test_every_trial_of_the_fast_scorecard_passes(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "scorecard", "--fast", "--out", str(tmp_path / "page.md")]
    paths = os.pathsep.join([str(PROJECT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [*command, "--state", str(tmp_path / "state")],
        cwd=PROJECT,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    lines = [line for path in (tmp_path / "state").glob("*.jsonl") for line in path.read_text().splitlines()]
    outcomes = [json.loads(line) for line in lines]
    assert len(outcomes) > 100
    assert [one for one in outcomes if not one["passed"]] == []
    assert "| R5 |" in (tmp_path / "page.md").read_text()
