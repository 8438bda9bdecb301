"""The order of rows is a pure function of (seed, step)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsebert.errors import TaskError
from sparsebert.tasks.encoding.batch_order import BatchOrder, by_length

_LENGTHS = st.lists(st.integers(1, 128), min_size=1, max_size=300).map(lambda lengths: np.array(lengths))


@given(_LENGTHS, st.integers(1, 40), st.integers(0, 3), st.integers(0, 5))
def test_every_epoch_shows_every_row_once(lengths: np.ndarray, batch_size: int, seed: int, epoch: int) -> None:
    order = BatchOrder(lengths, batch_size, seed)
    first = epoch * order.steps_per_epoch
    batches = [order.batch(step) for step in range(first, first + order.steps_per_epoch)]
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(lengths)))
    assert sum(len(batch) != batch_size for batch in batches) <= 1


@given(_LENGTHS, st.integers(1, 40))
def test_a_step_has_the_same_rows_whatever_was_asked_before(lengths: np.ndarray, batch_size: int) -> None:
    one, other = BatchOrder(lengths, batch_size, 0), BatchOrder(lengths, batch_size, 0)
    last = 3 * one.steps_per_epoch - 1
    forwards = [one.batch(step).tolist() for step in range(last + 1)]
    assert [other.batch(step).tolist() for step in range(last, -1, -1)][::-1] == forwards


def test_epochs_and_seeds_differ() -> None:
    lengths = np.arange(1, 101)

    def rows_that_meet(seed: int, epoch: int) -> frozenset[frozenset[int]]:
        order = BatchOrder(lengths, 8, seed)
        steps = range(epoch * order.steps_per_epoch, (epoch + 1) * order.steps_per_epoch)
        return frozenset(frozenset(order.batch(step).tolist()) for step in steps)

    assert len({rows_that_meet(0, 0), rows_that_meet(0, 1), rows_that_meet(1, 0)}) == 3


def test_rows_of_similar_length_meet() -> None:
    lengths = np.random.default_rng(0).integers(8, 128, 2000)
    order = BatchOrder(lengths, 16, 0)
    padded = sum(16 * lengths[order.batch(step)].max() for step in range(order.steps_per_epoch))
    assert padded < 1.05 * lengths.sum()


def test_evaluation_goes_from_long_to_short_and_forgets_nobody() -> None:
    batches = by_length(np.array([3, 9, 1, 9]), 2)
    assert [batch.tolist() for batch in batches] == [[1, 3], [0, 2]]


def test_an_empty_order_is_refused() -> None:
    with pytest.raises(TaskError, match="0 rows"):
        BatchOrder(np.zeros(0, dtype=np.int64), 8, 0)
