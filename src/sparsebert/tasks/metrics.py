"""Metrics of GLUE and SWAG in points of a hundred, from scikit-learn and scipy; never NaN."""

from collections.abc import Callable, Sequence
from statistics import fmean
from typing import TypeAlias

import numpy as np
from jaxtyping import Float, Int

from sparsebert.errors import TaskError

Labels: TypeAlias = Int[np.ndarray, " rows"] | Float[np.ndarray, " rows"]

# The nine columns of the paper's GLUE table: MNLI counts twice.
GLUE_COLUMNS = ("mnli_matched", "mnli_mismatched", "qqp", "qnli", "sst2", "cola", "stsb", "mrpc", "rte")


def score(metric: str, predicted: Labels, true: Labels) -> float:
    """One metric, in points: 100 is perfect."""
    if len(predicted) != len(true) or len(true) == 0:
        raise TaskError(f"{len(predicted)} predictions meet {len(true)} labels; expected as many, and at least one")
    if metric not in _METRICS:
        raise TaskError(f"there is no metric {metric!r}; expected one of {', '.join(_METRICS)}")
    return 100.0 * _METRICS[metric](np.asarray(predicted), np.asarray(true))


def scores(metrics: Sequence[str], predicted: Labels, true: Labels) -> dict[str, float]:
    return {metric: score(metric, predicted, true) for metric in metrics}


def glue_average(columns: dict[str, float]) -> float:
    """The paper's average: the mean of nine columns, MNLI-m and MNLI-mm apart."""
    missing = [name for name in GLUE_COLUMNS if name not in columns]
    if missing:
        raise TaskError(
            f"the GLUE average needs nine columns and {', '.join(missing)} are missing; fine-tune those too"
        )
    return fmean(columns[name] for name in GLUE_COLUMNS)


# scikit-learn takes five seconds to import, so each metric brings its own.


def _accuracy(predicted: Labels, true: Labels) -> float:
    return float((predicted == true).mean())


def _f1(predicted: Labels, true: Labels) -> float:
    from sklearn.metrics import f1_score

    return float(f1_score(true, predicted, pos_label=1, zero_division=0.0))


def _matthews(predicted: Labels, true: Labels) -> float:
    from sklearn.metrics import matthews_corrcoef

    if _constant(predicted) or _constant(true):
        return 0.0  # the limit, and what scikit-learn says with a warning
    return float(matthews_corrcoef(true, predicted))


def _spearman(predicted: Labels, true: Labels) -> float:
    from scipy.stats import spearmanr

    if _constant(predicted) or _constant(true):
        return 0.0  # undefined: a constant orders nothing
    return float(spearmanr(predicted, true).statistic)


def _pearson(predicted: Labels, true: Labels) -> float:
    from scipy.stats import pearsonr

    if _constant(predicted) or _constant(true):
        return 0.0
    return float(pearsonr(predicted.astype(np.float64), true.astype(np.float64)).statistic)


def _constant(values: Labels) -> bool:
    return bool((values == values[0]).all())


_METRICS: dict[str, Callable[[Labels, Labels], float]] = {
    "accuracy": _accuracy,
    "f1": _f1,
    "matthews": _matthews,
    "spearman": _spearman,
    "pearson": _pearson,
}
