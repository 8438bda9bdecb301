"""Batches of texts of nearly one length: little padding, and a bound on the tokens that are in memory at once."""

from collections.abc import Iterator, Sequence

BATCH_TOKENS = 8192  # in a batch, padding too: enough to keep a few cores busy


def batches_by_length(lengths: Sequence[int], tokens: int) -> Iterator[list[int]]:
    """Numbers of texts, the longest first: what does not fit into memory is known at once. A text that is longer than
    a batch is one by itself."""
    order = sorted(range(len(lengths)), key=lambda number: -lengths[number])
    batch: list[int] = []
    for number in order:
        if batch and (len(batch) + 1) * lengths[batch[0]] > tokens:
            yield batch
            batch = []
        batch.append(number)
    if batch:
        yield batch
