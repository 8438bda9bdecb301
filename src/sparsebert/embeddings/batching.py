"""Batches of texts of nearly one length: little or no padding, and a bound on the tokens that are in memory at once."""

from collections.abc import Iterator, Sequence

BATCH_TOKENS = 8192  # in a batch: enough to keep a few cores busy


def batches_by_length(lengths: Sequence[int], tokens: int, *, packed: bool = False) -> Iterator[list[int]]:
    """Numbers of texts, the longest first: what does not fit into memory is known at once. A text that is longer than
    a batch is one by itself. packed: the batch has no padding, which else counts too."""
    order = sorted(range(len(lengths)), key=lambda number: -lengths[number])
    batch: list[int] = []
    taken = 0
    for number in order:
        cost = lengths[number] if packed or not batch else lengths[batch[0]]
        if batch and taken + cost > tokens:
            yield batch
            batch, taken, cost = [], 0, lengths[number]
        batch.append(number)
        taken += cost
    if batch:
        yield batch
