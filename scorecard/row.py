"""A row of the scorecard: what is tested, how often, and how one trial is run."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Figures = dict[str, float]


class FailedTrialError(Exception):
    """What was found instead of what should be, in a line."""


def require(condition: object, found: str) -> None:
    if not condition:
        raise FailedTrialError(found)


@dataclass(frozen=True)
class Trial:
    """One trial, and the folders it may use."""

    number: int
    shared: Path  # what the row's setup made, for all trials; read only
    folder: Path  # its own, empty, removed afterwards


def _nothing(_: Path) -> None:
    """A row that needs no setup."""


@dataclass(frozen=True)
class Row:
    """One line of docs/results/reliability.md."""

    name: str
    test: str
    target: str
    trials: int
    run: Callable[[Trial], Figures | None]  # raises when the trial fails
    setup: Callable[[Path], None] = _nothing  # once, in a process of its own
    chunk: int = 1  # trials that share a process
    unit: str = "trials"
    each: int = 1  # units in a trial
    count: Callable[[Path], int] | None = None  # trials in full, where only the setup can tell; else `trials`
    fast: Sequence[int] = ()  # trials that are part of the test suite
    words: Callable[[Sequence[Figures]], str] | None = None  # what the figures of all trials say together


@dataclass(frozen=True)
class Outcome:
    """What became of a trial; a line of the state file."""

    trial: int
    passed: bool
    note: str = ""
    figures: Figures = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return {"trial": self.trial, "passed": self.passed, "note": self.note, "figures": self.figures}
