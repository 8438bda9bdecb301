"""Temperatures and target densities as pure functions of the step, so that a resumed run needs nothing but its step."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from sparsebert.errors import GateError
from sparsebert.settings import Range, check

Kind = Literal["constant", "linear", "exponential"]


@dataclass(frozen=True)
class Schedule:
    """A value that goes from `start` to `end` over the first `share` of the steps, and stays there."""

    kind: Kind
    start: float
    end: float
    share: Annotated[float, Range(0, 1, without_low=True)] = 1.0  # of all steps

    spelling: ClassVar[str] = 'a number, or a list such as ["linear", 1.0, 0.4]'

    def __post_init__(self) -> None:
        check(self, GateError)
        if self.kind == "exponential" and min(self.start, self.end) <= 0:
            raise GateError(f"an exponential schedule from {self.start} to {self.end} cannot be; both must be above 0")

    @classmethod
    def from_json(cls, value: Any) -> "Schedule":
        """A number stays as it is over all steps; a list holds the fields in their order."""
        try:
            if isinstance(value, list | tuple):
                return cls(*value)
            return constant(value if isinstance(value, bool) else value + 0.0)
        except (GateError, TypeError) as error:
            raise ValueError(f"{value!r} spells no schedule") from error

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
