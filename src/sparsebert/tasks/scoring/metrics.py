"""Metrics of GLUE and SWAG in points of a hundred, from scikit-learn and scipy; never NaN."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from jaxtyping import Float, Int

from sparsebert.errors import TaskError

Labels: TypeAlias = Int[np.ndarray, " rows"] | Float[np.ndarray, " rows"]


def score(metric: str, predicted: Labels, true: Labels) -> float:
    """One metric, in points: 100 is perfect."""
    predicted, true = np.asarray(predicted), np.asarray(true)
    if len(predicted) != len(true) or len(true) == 0:
        raise TaskError(f"{len(predicted)} predictions meet {len(true)} labels; expected as many, and at least one")
    if metric not in _METRICS:
        raise TaskError(f"there is no metric {metric!r}; expected one of {', '.join(_METRICS)}")
    if metric in _CORRELATIONS and (_is_constant(predicted) or _is_constant(true)):
        return 0.0  # undefined, for a constant orders nothing; of Matthews' the limit
    return 100.0 * _METRICS[metric](predicted, true)


def scores(metrics: Sequence[str], predicted: Labels, true: Labels) -> dict[str, float]:
    return {metric: score(metric, predicted, true) for metric in metrics}


def _is_constant(values: Labels) -> bool:
    return bool((values == values[0]).all())


# scikit-learn takes five seconds to import, so each metric brings its own.


def _accuracy(predicted: Labels, true: Labels) -> float:
    return float((predicted == true).mean())


def _f1(predicted: Labels, true: Labels) -> float:
    from sklearn.metrics import f1_score

    return float(f1_score(true, predicted, pos_label=1, zero_division=0.0))


def _matthews(predicted: Labels, true: Labels) -> float:
    from sklearn.metrics import matthews_corrcoef

    return float(matthews_corrcoef(true, predicted))


def _spearman(predicted: Labels, true: Labels) -> float:
    from scipy.stats import spearmanr

    return float(spearmanr(predicted, true).statistic)


def _pearson(predicted: Labels, true: Labels) -> float:
    from scipy.stats import pearsonr

    return float(pearsonr(predicted.astype(np.float64), true.astype(np.float64)).statistic)


_Metric: TypeAlias = Callable[[Labels, Labels], float]
_CORRELATIONS: dict[str, _Metric] = {"matthews": _matthews, "spearman": _spearman, "pearson": _pearson}
_METRICS: dict[str, _Metric] = {"accuracy": _accuracy, "f1": _f1, **_CORRELATIONS}
