"""Temperatures and target densities as pure functions of the step, so that a resumed run needs nothing but its step."""

from dataclasses import dataclass
from typing import Literal, get_args

from sparsebert.errors import GateError

Kind = Literal["constant", "linear", "exponential"]


@dataclass(frozen=True)
class Schedule:
    """A value that goes from `start` to `end` over the first `share` of the steps, and stays there."""

    kind: Kind
    start: float
    end: float
    share: float = 1.0  # of all steps

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise GateError(f"schedule is {self.kind!r}; expected one of {', '.join(get_args(Kind))}")
        if not 0.0 < self.share <= 1.0:
            raise GateError(f"a schedule over {self.share} of the steps was asked for; expected above 0, at most 1")
        if self.kind == "exponential" and min(self.start, self.end) <= 0:
            raise GateError(f"an exponential schedule from {self.start} to {self.end} cannot be; both must be above 0")

    def at(self, step: int, steps: int) -> float:
        """The value at a step (counted from 0) of a run of `steps`."""
        if self.kind == "constant":
            return self.start
        done = min(max(step, 0) / max(self.share * steps, 1.0), 1.0)
        if self.kind == "linear":
            return self.start + (self.end - self.start) * done
        return float(self.start * (self.end / self.start) ** done)


def constant(value: float) -> Schedule:
    return Schedule("constant", value, value)
