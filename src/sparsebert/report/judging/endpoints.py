"""What a condition is measured by before any task: under mlm a loss, under distill a distance and STS."""

from collections.abc import Callable
from dataclasses import dataclass

from sparsebert.studies.results import Study, StudyRun


@dataclass(frozen=True)
class Endpoint:
    """A figure that every adapted condition has."""

    words: str  # in the name of a comparison, and of a table's column
    title: str
    unit: str  # of margins.OF_UNIT
    axis: str
    of: Callable[[StudyRun], float | None]
    lower_is_better: bool = True
    digits: int = 4

    def gain(self, run: StudyRun) -> float | None:
        """With its sign turned where less is better."""
        value = self.of(run)
        return None if value is None else -value if self.lower_is_better else value


LOSS = Endpoint("MLM loss", "Held-out MLM loss", "nats", "nats, lower is better", lambda run: run.loss)
DISTANCE = Endpoint(
    "distance",
    "Held-out distance of embeddings",
    "distance",
    "1 - cosine to the dense model, lower is better",
    lambda run: run.distance,
)
STS = Endpoint("STS", "Mean of the STS sets", "STS points", "points", lambda run: run.sts, False, 2)

# Of each protocol; the first decides a claim, another one is judged by itself beside it.
ENDPOINTS: dict[str, tuple[Endpoint, ...]] = {"mlm": (LOSS,), "distill": (DISTANCE, STS)}


def endpoints_of(study: Study) -> tuple[Endpoint, ...]:
    return ENDPOINTS[study.protocol]


def deciding(study: Study) -> Endpoint:
    return endpoints_of(study)[0]
