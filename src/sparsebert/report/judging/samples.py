"""Figures by task (or head) and seed, their paired differences, and the runs that each came from."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from statistics import fmean

from sparsebert.report.judging.endpoints import LOSS, Endpoint
from sparsebert.studies.results import StudyRun


@dataclass(frozen=True)
class Sample:
    """A figure for each (block, seed), averaged where several runs gave one, and the runs behind it."""

    values: dict[tuple[str, int], float] = field(default_factory=dict)
    runs: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.values)

    def minus(self, other: "Sample") -> "Sample":
        """Differences where both have a value."""
        shared = self.values.keys() & other.values.keys()
        return Sample(
            {key: self.values[key] - other.values[key] for key in sorted(shared)}, _merged(self.runs, other.runs)
        )


def scores(runs: Iterable[StudyRun]) -> Sample:
    """Score of each (task, seed), in points."""
    return _sample(runs, lambda run: None if run.score is None or run.task is None else (run.task, run.score))


def gains(runs: Iterable[StudyRun], endpoint: Endpoint = LOSS) -> Sample:
    """An endpoint's figures, turned so that more is better."""
    return _sample(runs, lambda run: None if (gain := endpoint.gain(run)) is None else (endpoint.words, gain))


def mean_of(samples: Iterable[Sample]) -> Sample:
    """The mean of several samples, where all of them have a value."""
    given = [sample for sample in samples if sample]
    if not given:
        return Sample()
    shared = set.intersection(*(set(sample.values) for sample in given))
    means = {key: fmean(sample.values[key] for sample in given) for key in sorted(shared)}
    return Sample(means, _merged(*(sample.runs for sample in given)))


def _sample(runs: Iterable[StudyRun], read: Callable[[StudyRun], tuple[str, float] | None]) -> Sample:
    found: dict[tuple[str, int], list[float]] = defaultdict(list)
    used = []
    for run in runs:
        got = read(run)
        if got is not None:
            found[got[0], run.seed].append(got[1])
            used.append(run.id)
    return Sample({key: fmean(values) for key, values in sorted(found.items())}, _merged(used))


def _merged(*groups: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(id_ for group in groups for id_ in group))
