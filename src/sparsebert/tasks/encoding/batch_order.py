"""Which rows make up the batch of a step: a pure function of (seed, step), rows of similar length together."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Int64

from sparsebert import draws
from sparsebert.errors import TaskError

MAX_WINDOW = 50  # batches within which rows are sorted by length: enough to save padding
MIN_WINDOWS = 4  # an epoch has at least so many: sorted as one, a small data set would always give the same batches


@dataclass(frozen=True, eq=False)
class BatchOrder:
    """Every epoch shows every row once; only its last batch in the making may be smaller."""

    lengths: Int64[np.ndarray, " rows"]
    batch_size: int
    seed: int

    def __post_init__(self) -> None:
        if self.batch_size < 1 or len(self.lengths) < 1:
            raise TaskError(f"{len(self.lengths)} rows in batches of {self.batch_size}; at least 1 of each is needed")

    @property
    def steps_per_epoch(self) -> int:
        return -(-len(self.lengths) // self.batch_size)

    def batch(self, step: int) -> Int64[np.ndarray, " rows"]:
        """Rows of step number `step`, counted from 0 over all epochs."""
        epoch, index = divmod(step, self.steps_per_epoch)
        return self._epoch(epoch)[index]

    @lru_cache(maxsize=2)  # noqa: B019 - an order lives as long as its run
    def _epoch(self, epoch: int) -> list[Int64[np.ndarray, " rows"]]:
        """Permute the rows, sort them by length within windows, cut batches, permute the batches."""
        generator = draws.generator(self.seed, "tasks/order", step=epoch)
        order, size = generator.permutation(len(self.lengths)), self.batch_size
        window = size * max(1, min(MAX_WINDOW, len(order) // (MIN_WINDOWS * size)))
        batches = _cut(np.concatenate([_longest_first(self.lengths, rows) for rows in _cut(order, window)]), size)
        return [batches[index] for index in generator.permutation(len(batches))]


def by_length(lengths: Int64[np.ndarray, " rows"], batch_size: int) -> list[Int64[np.ndarray, " rows"]]:
    """All rows once, the longest first, in batches with next to no padding: for evaluation and prediction."""
    return _cut(_longest_first(lengths, np.arange(len(lengths))), batch_size)


def _longest_first(lengths: Int64[np.ndarray, " all"], rows: Int64[np.ndarray, " rows"]) -> Int64[np.ndarray, " rows"]:
    return rows[np.argsort(-lengths[rows], kind="stable")]


def _cut(rows: Int64[np.ndarray, " rows"], size: int) -> list[Int64[np.ndarray, " part"]]:
    return [rows[start : start + size] for start in range(0, len(rows), size)]
