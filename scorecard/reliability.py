"""docs/results/reliability.md: written from the outcomes that were really had, and read back where it stands."""

import datetime
import os
import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from scorecard.row import Outcome, Row
from scorecard.runner import State

_HEAD = """# Reliability: faults, bad input, hostile input

Written by `make faults` (row L1: `make soak`) from what was run; a row says how many trials that were.
Rows that stand here as finished are not run again unless they are asked for:
`make faults ARGS="--rows N2,D1 --anew"`. `ARGS=--help` tells the rest. A row that was interrupted goes on where it was.
"""
_DAY = re.compile(r"(?:; |^)run on (\d{4}-\d\d-\d\d)$")


@dataclass(frozen=True)
class Line:
    """What the page says of a row."""

    test: str
    target: str
    result: str
    words: str
    day: str  # on which it was run
    failures: tuple[str, ...] = ()

    def is_finished(self, row: Row) -> bool:
        """Every trial of the row as it is now was run and passed."""
        counted = re.match(r"([\d,]+) / ([\d,]+) ", self.result)
        has_passed = counted is not None and counted[1] == counted[2] and "when run in full" not in self.result
        return has_passed and (self.test, self.target) == (row.test, row.target)


def read_page(path: Path) -> dict[str, Line]:
    """The lines of a page that was written earlier, by the names of their rows."""
    lines = path.read_text().splitlines() if path.exists() else []
    today = next((line[:10] for line in lines if re.match(r"\d{4}-\d\d-\d\d, ", line)), "")
    found = {}
    for line in lines:
        if re.match(r"\| [A-Z]\d+ \| ", line):
            name, test, target, result, words = line[2:-2].split(" | ")
            day = _DAY.search(words)
            failures = tuple(other for other in lines if other.startswith(f"- {name}, trial "))
            found[name] = Line(test, target, result, _DAY.sub("", words), day[1] if day else today, failures)
    return found


def write_page(rows: Sequence[Row], state: State, path: Path) -> None:
    """What the state holds of each row, or what the page said already where that is more."""
    earlier, today = read_page(path), datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    lines = [_HEAD, f"{today}, {_machine()}\n", "| # | test | target | result | |", "|---|---|---|---|---|"]
    failures: list[str] = []
    for row in rows:
        line = _line(row, state, earlier.get(row.name))
        day = "" if line.day in ("", today) else f"{'; ' if line.words else ''}run on {line.day}"
        lines.append(f"| {row.name} | {line.test} | {line.target} | {line.result} | {line.words}{day} |")
        failures += line.failures
    if failures:
        lines += ["", "## Trials that failed", "", *failures]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")


def _line(row: Row, state: State, earlier: Line | None) -> Line:
    outcomes = state.outcomes(row)
    is_less = len(outcomes) < state.full(row) and all(one.passed for one in outcomes)
    if earlier is not None and (not outcomes or (is_less and earlier.is_finished(row))):
        return earlier
    failures = (f"- {row.name}, trial {one.trial}: {_short(one.note)}" for one in outcomes if not one.passed)
    return Line(row.test, row.target, result(row, state), _words(row, outcomes), state.day(row), tuple(failures))


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
    return f"{os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}, no GPU."
