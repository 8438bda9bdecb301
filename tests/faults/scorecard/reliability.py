"""docs/results/reliability.md from the outcomes that were really had."""

import datetime
import os
import platform
from collections.abc import Sequence
from pathlib import Path

from tests.faults.scorecard.row import Outcome, Row
from tests.faults.scorecard.runner import State

_HEAD = """# Reliability: faults, bad input, hostile input

Written by `make faults` (row L1: `make soak`) from what was run; a row says how many trials that were.
`--rows` runs some rows, `--trials-scale` some of the trials; a row that was interrupted goes on where it was.
"""


def write_report(rows: Sequence[Row], state: State, path: Path) -> None:
    lines = [_HEAD, f"{_machine()}\n", "| # | test | target | result | |", "|---|---|---|---|---|"]
    failures: list[str] = []
    for row in rows:
        outcomes = state.outcomes(row)
        lines.append(f"| {row.name} | {row.test} | {row.target} | {result(row, state)} | {_words(row, outcomes)} |")
        failures += [f"- {row.name}, trial {one.trial}: {_short(one.note)}" for one in outcomes if not one.passed]
    if failures:
        lines += ["", "## Trials that failed", "", *failures]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")


def result(row: Row, state: State) -> str:
    """How many trials passed, of how many, of how many there should be, and how many needed a second run."""
    outcomes, full, repeated = state.outcomes(row), state.full(row), state.failed_before(row)
    if not outcomes:
        return "not run"
    passed = sum(one.passed for one in outcomes) * row.each
    text = f"{passed:,} / {len(outcomes) * row.each:,} {row.unit}"
    text += "" if len(outcomes) >= full else f"; {full * row.each:,} when run in full"
    return text + (f"; {repeated} had failed before and were run again" if repeated else "")


def _words(row: Row, outcomes: Sequence[Outcome]) -> str:
    figures = [one.figures for one in outcomes if one.passed]
    return row.words(figures) if row.words is not None and figures else ""


def _short(note: str) -> str:
    lines = note.strip().splitlines()
    return lines[-1][:300].replace("|", "\\|") if lines else "no reason was given"


def _machine() -> str:
    today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    return f"{today}, {os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}, no GPU."
