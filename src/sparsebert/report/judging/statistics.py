"""Paired differences with an interval and two p-values, and Holm's correction.

A difference belongs to a block (a task, or a head) and a seed. Seeds are what was drawn at random and what a reader
would draw anew, so a Student interval over seed means carries the error rate; a bootstrap over all pairs stands beside
it, and the wider of the two is reported. docs/decisions/statistics.md has the reasons and the measured rates.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy import stats

from sparsebert import draws

LEVEL = 0.95
RESAMPLES = 4999  # where a study does not say
MIN_SEEDS = 2  # one seed has no spread, whatever the number of tasks

Pairs = Mapping[tuple[str, int], float]  # (block, seed) -> difference


@dataclass(frozen=True)
class Estimate:
    """A mean difference; p: that it is above `bound`, p_against: that it is below `ceiling`, both two-sided."""

    effect: float
    low: float
    high: float
    p: float
    p_against: float
    seeds: int
    pairs: int


def balanced(pairs: Pairs) -> Float[np.ndarray, "seeds blocks"]:
    """A full table: the blocks that every seed has, or the seeds that have every block if there are no such blocks."""
    seeds, blocks = sorted({seed for _, seed in pairs}), sorted({block for block, _ in pairs})
    full = [block for block in blocks if all((block, seed) in pairs for seed in seeds)]
    if not full:
        full = blocks
        seeds = [seed for seed in seeds if all((block, seed) in pairs for block in blocks)]
    if not seeds:
        return np.array([[np.mean([pairs[key] for key in sorted(pairs)])]])
    return np.array([[pairs[block, seed] for block in full] for seed in seeds], dtype=float)


def estimate(
    pairs: Pairs, *, bound: float = 0.0, ceiling: float = 0.0, seed: int = 0, resamples: int = RESAMPLES
) -> Estimate:
    """The mean of paired differences, averaged over blocks and then over seeds."""
    table = balanced(pairs)
    means, effect = table.mean(1), float(table.mean())
    drawn = _bootstrap(table.ravel(), seed, resamples)
    tail = (1 - LEVEL) / 2
    low, high = (float(value) for value in np.quantile(drawn, [tail, 1 - tail]))
    above, below = _share(drawn <= bound), _share(drawn >= ceiling)
    if len(means) >= MIN_SEEDS:
        reach = _student_reach(means)
        low, high = min(low, effect - reach), max(high, effect + reach)
        above, below = max(above, _student(means, bound)), max(below, _student(-means, -ceiling))
    return Estimate(effect, low, high, min(1.0, 2 * above), min(1.0, 2 * below), len(means), table.size)


def _bootstrap(values: Float[np.ndarray, " pairs"], seed: int, resamples: int) -> Float[np.ndarray, " resamples"]:
    if len(values) < 2 or np.ptp(values) == 0:
        return np.full(2, values.mean())
    found = stats.bootstrap(
        (values,),
        np.mean,
        n_resamples=resamples,
        method="percentile",
        batch=1000,
        rng=draws.generator(seed, "report/bootstrap"),
    )
    return np.asarray(found.bootstrap_distribution, dtype=float)


def _share(hits: np.ndarray) -> float:
    """The share of resamples, counting the data itself as one of them."""
    return float((hits.sum() + 1) / (len(hits) + 1)) if len(hits) > 2 else float(hits.any())


def _student_reach(means: Float[np.ndarray, " seeds"]) -> float:
    quantile = stats.t.ppf((1 + LEVEL) / 2, len(means) - 1)
    return float(quantile * means.std(ddof=1) / np.sqrt(len(means)))


def _student(means: Float[np.ndarray, " seeds"], bound: float) -> float:
    """One-sided p of a mean above the bound."""
    error = means.std(ddof=1) / np.sqrt(len(means))
    distance = means.mean() - bound
    if error <= 1e-12 * max(1.0, abs(distance)):  # equal to the last bit: there is nothing left to doubt
        return 0.0 if distance > 0 else 1.0
    return float(stats.t.sf(distance / error, len(means) - 1))


def interval_of_mean(values: Sequence[float]) -> tuple[float, float] | None:
    """Student's 95 % interval of a mean over seeds; None with fewer than three."""
    if len(values) < 3:
        return None
    array = np.asarray(values, dtype=float)
    reach = _student_reach(array)
    return float(array.mean() - reach), float(array.mean() + reach)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down adjustment: compare each with the level itself."""
    order = np.argsort(p_values, kind="stable")
    adjusted = np.empty(len(p_values))
    running = 0.0
    for place, index in enumerate(order):
        running = max(running, (len(p_values) - place) * p_values[index])
        adjusted[index] = min(1.0, running)
    return [float(value) for value in adjusted]
