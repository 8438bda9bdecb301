"""What the importance runs of a study found."""

from collections.abc import Callable
from functools import lru_cache

from sparsebert.importance.saved import Method, Summary, read_summary
from sparsebert.report.judging.samples import Sample
from sparsebert.studies.results import Study, StudyRun


@lru_cache(maxsize=8)
def importances(study: Study, method: Method) -> tuple[tuple[StudyRun, Summary], ...]:
    """Every finished importance run that left something to read, with what it found."""
    # A P to prune by is learned in another model, and no claim is about it.
    found = ((run, read_summary(run.path)) for run in study.finished("importance", family="importance"))
    return tuple((run, summary) for run, summary in found if summary is not None and summary.method == method)


def by_head(
    study: Study, method: Method, one: str, other: str, compare: Callable[[float, float], float | None]
) -> Sample:
    """Two categories compared in every head of every run; None leaves a head out."""
    found = importances(study, method)
    compared = {
        (f"head {head}", run.seed): compare(*means)
        for run, summary in found
        for head, means in enumerate(
            zip(summary.categories.get(one, ()), summary.categories.get(other, ()), strict=False)
        )
    }
    values = {key: value for key, value in compared.items() if value is not None}
    return Sample(values, tuple(run.id for run, _ in found))
