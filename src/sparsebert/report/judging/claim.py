"""What a claim is: a sentence of the paper, and the comparisons of runs that it stands or falls by."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

from sparsebert.report.judging.margins import OF_UNIT
from sparsebert.report.judging.samples import Sample
from sparsebert.studies.results import Study

Kind = Literal["superiority", "non-inferiority"]


@dataclass(frozen=True)
class Comparison:
    """Paired differences, positive where the paper says so; a claim holds only if each of its comparisons does."""

    name: str
    unit: str  # of margins.OF_UNIT
    sample: Sample
    least: float = 0.0  # what a superiority must exceed

    def bounds(self, kind: Kind) -> tuple[float, float]:
        """The claim: the mean lies above the first. The contrary: it lies below the second."""
        margin = OF_UNIT[self.unit]
        # A superiority below the margin is too small to matter; what is not inferior may be worse by as much.
        return (self.least, max(self.least, margin)) if kind == "superiority" else (-margin, -margin)


Comparisons = Callable[[Study], list[Comparison]]


@dataclass(frozen=True)
class Claim:
    """number: as the paper's order has it."""

    number: int
    name: str
    study: str  # whose runs it is judged by
    statement: str
    kind: Kind
    comparisons: Comparisons


def claim(
    number: int, name: str, study: str, statement: str, kind: Kind = "superiority"
) -> Callable[[Comparisons], Claim]:
    """Makes a claim of the function below it, which finds its comparisons; one without a sample is left out."""
    return partial(Claim, number, name, study, statement, kind)
