"""Intervals that cover, p-values that are honest, Holm by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsebert import draws
from sparsebert.report.judging.statistics import balanced, estimate, holm, interval_of_mean


def pairs(table: np.ndarray) -> dict[tuple[str, int], float]:
    return {
        (f"task {block}", seed): float(table[seed, block])
        for seed in range(len(table))
        for block in range(table.shape[1])
    }


def test_the_effect_is_the_mean_over_blocks_and_seeds() -> None:
    found = estimate(pairs(np.array([[1.0, 3.0], [2.0, 4.0], [1.5, 3.5]])))
    assert found.effect == pytest.approx(2.5)
    assert (found.seeds, found.pairs) == (3, 6)
    assert found.low < 2.5 < found.high


def test_one_seed_has_the_interval_of_its_tasks() -> None:
    found = estimate(pairs(np.array([[1.0, 2.0, 3.0, 4.0]])))
    assert found.seeds == 1
    assert 1.0 <= found.low < 2.5 < found.high <= 4.0


def test_tasks_that_miss_a_seed_are_left_out() -> None:
    table = balanced({("a", 0): 1.0, ("a", 1): 2.0, ("b", 0): 100.0})
    assert table.tolist() == [[1.0], [2.0]]


def test_seeds_that_miss_a_task_are_left_out_when_no_task_is_complete() -> None:
    table = balanced({("a", 0): 1.0, ("b", 0): 2.0, ("a", 1): 3.0, ("b", 2): 4.0})
    assert table.tolist() == [[1.0, 2.0]]


def test_equal_differences_leave_no_doubt() -> None:
    found = estimate(pairs(np.full((3, 2), 0.5)))
    assert (found.low, found.high, found.p) == (0.5, 0.5, 0.0)


def test_a_shared_seed_effect_widens_the_interval() -> None:
    """Twelve tasks of three seeds are not thirty-six independent numbers."""
    seeds = np.array([[-1.0], [0.0], [2.5]])
    found = estimate(pairs(seeds + np.zeros((3, 12))))
    assert found.high - found.low > 8.0


def rate_of_false_alarms(seeds: int, blocks: int, shared: float, trials: int) -> float:
    random = draws.generator(seeds, f"tests/false alarms/{blocks}/{shared}")
    alarms = 0
    for _ in range(trials):
        table = random.normal(0, 1, (seeds, blocks)) + random.normal(0, shared, (seeds, 1))
        found = estimate(pairs(table))
        alarms += min(found.p, found.p_against) < 0.05
    return alarms / trials


@pytest.mark.parametrize("shared", [0.0, 1.0])
@pytest.mark.parametrize("seeds", [2, 3, 5])
def test_false_alarms_are_no_more_frequent_than_promised(seeds: int, shared: float) -> None:
    # 5 % promised; 200 trials of a true 5 % stay at or below 8.5 % in 98 of 100 cases.
    assert rate_of_false_alarms(seeds, 8, shared, trials=200) <= 0.085


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_never_lowers_a_p_value_and_keeps_the_order(values: list[float]) -> None:
    adjusted = holm(values)
    assert all(0 <= before <= after <= 1 for before, after in zip(values, adjusted, strict=True))
    order = np.argsort(values, kind="stable")
    assert (np.diff(np.array(adjusted)[order]) >= 0).all()


def test_an_interval_over_seeds_needs_three() -> None:
    assert interval_of_mean([1.0, 2.0]) is None
    low, high = interval_of_mean([1.0, 2.0, 3.0]) or (0.0, 0.0)
    assert (low + high) / 2 == pytest.approx(2.0)
    assert high - low == pytest.approx(2 * 4.3027 / 3**0.5, rel=1e-4)
