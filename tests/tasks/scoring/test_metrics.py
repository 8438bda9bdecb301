"""Metrics in points, by their definitions, and never NaN."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsebert.errors import TaskError
from sparsebert.tasks.scoring.metrics import score, scores

_CLASSES = st.lists(st.integers(0, 1), min_size=1, max_size=30)


def test_accuracy_is_the_share_of_equal_labels() -> None:
    assert score("accuracy", np.array([1, 0, 1, 1]), np.array([1, 1, 1, 0])) == 50.0


def test_f1_is_that_of_class_one() -> None:
    # 2 found, 3 true, 1 shared: precision 1/2, recall 1/3.
    assert score("f1", np.array([1, 1, 0, 0]), np.array([1, 0, 1, 1])) == pytest.approx(40.0)


def test_f1_without_any_positive_is_zero_without_a_warning() -> None:
    assert score("f1", np.zeros(3, dtype=int), np.zeros(3, dtype=int)) == 0.0


def test_matthews_follows_its_formula() -> None:
    # tp 2, tn 1, fp 1, fn 1: (2*1 - 1*1) / sqrt(3*3*2*2) = 1/6.
    predicted, true = np.array([1, 1, 0, 1, 0]), np.array([1, 1, 0, 0, 1])
    assert score("matthews", predicted, true) == pytest.approx(100 / 6)


def test_a_constant_prediction_has_no_correlation() -> None:
    for metric in ("matthews", "spearman", "pearson"):
        assert score(metric, np.ones(4), np.array([0.0, 1.0, 2.0, 3.0])) == 0.0


def test_spearman_sees_ranks_and_pearson_sees_values() -> None:
    predicted, true = np.array([1.0, 2.0, 3.0, 100.0]), np.array([0.5, 1.0, 4.0, 5.0])
    assert score("spearman", predicted, true) == pytest.approx(100.0)
    assert score("pearson", predicted, true) < 90


@given(
    _CLASSES.flatmap(
        lambda one: st.tuples(st.just(one), st.lists(st.integers(0, 1), min_size=len(one), max_size=len(one)))
    )
)
def test_no_metric_is_ever_nan(pair: tuple[list[int], list[int]]) -> None:
    predicted, true = (np.array(one) for one in pair)
    for value in scores(["accuracy", "f1", "matthews"], predicted, true).values():
        assert math.isfinite(value)


def test_predictions_that_do_not_match_the_labels_are_refused() -> None:
    with pytest.raises(TaskError, match="2 predictions meet 3 labels"):
        score("accuracy", np.zeros(2), np.zeros(3))
    with pytest.raises(TaskError, match="no metric 'bleu'"):
        score("bleu", np.zeros(2), np.zeros(2))
