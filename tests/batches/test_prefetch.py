"""The same batches as without a thread, and no thread left behind."""

import threading
from itertools import islice

import pytest

from sparsebert.batches import Prefetcher, PretrainingBatches
from sparsebert.text import TokenStore


class Counting:
    """Batch k is k; step `bad` fails."""

    def __init__(self, bad: int | None = None) -> None:
        self.bad = bad

    def batch(self, step: int) -> int:
        if step == self.bad:
            raise ValueError(f"step {step} is bad")
        return step


def test_prefetched_batches_are_those_made_one_by_one(store: TokenStore) -> None:
    batches = PretrainingBatches(store, batch_size=4, length=32, seed=0)
    with Prefetcher(batches, first_step=3) as prefetched:
        for step, batch in zip(range(3, 9), prefetched, strict=False):
            assert batch.input_ids.tolist() == batches.batch(step).input_ids.tolist()


def test_it_ends_before_the_last_step() -> None:
    with Prefetcher(Counting(), 2, last_step=12, depth=3) as prefetched:
        assert list(prefetched) == list(range(2, 12))
        assert list(prefetched) == []


def test_an_error_is_raised_when_its_batch_is_due() -> None:
    with Prefetcher(Counting(bad=3), 0) as prefetched:
        assert list(islice(prefetched, 3)) == [0, 1, 2]
        for _ in range(2):
            with pytest.raises(ValueError, match="step 3 is bad"):
                next(prefetched)


def test_closing_ends_the_thread_even_when_nothing_was_taken() -> None:
    prefetched = Prefetcher(Counting(), 0, depth=1)
    prefetched.close()
    prefetched.close()
    assert list(prefetched) == []
    assert not [thread for thread in threading.enumerate() if thread.name == "prefetch"]
