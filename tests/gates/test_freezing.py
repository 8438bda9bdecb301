"""Choosing units under a budget."""

import numpy as np

from sparsebert.gates.freezing import keep_within


def test_units_are_kept_in_the_order_of_their_scores() -> None:
    keep = keep_within(np.array([[3.0, 1.0, 2.0]]), np.array([1, 1, 1]), 2, entries=3)
    assert keep.tolist() == [[True, False, True]]


def test_barred_units_are_never_kept() -> None:
    keep = keep_within(np.array([[-np.inf, 1.0]]), np.array([5, 5]), 10, entries=10)
    assert keep.tolist() == [[False, True]]


def test_the_weakest_unit_gives_way_to_one_that_fits_where_the_budget_is_missed_by_much() -> None:
    # 60 + 60 would miss 100 by 20 of 1000 entries; 60 + 40 does not.
    keep = keep_within(np.array([[3.0, 2.0, 1.0]]), np.array([60, 60, 40]), 100, entries=1000)
    assert keep.tolist() == [[True, False, True]]


def test_without_an_assured_part_the_ranking_alone_decides() -> None:
    scores = np.array([[5.0, 4.0], [1.0, 0.0]])
    assert keep_within(scores, np.array([1, 1]), 2, entries=4, assured=0.0).tolist() == [[True, True], [False, False]]
    assert keep_within(scores, np.array([1, 1]), 2, entries=4, assured=1.0).tolist() == [[True, False], [True, False]]
