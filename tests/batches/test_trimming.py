"""Rows of like length together: nothing is lost, and less is padded."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from sparsebert.batches import TextBatch, like_lengths


def batch_of(lengths: list[int]) -> TextBatch:
    """Rows whose tokens say which row they belong to."""
    real = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    ids = (torch.arange(len(lengths))[:, None] + 1) * real
    return TextBatch(ids, (ids % 2).clone(), torch.tensor(lengths))


def rows_of(batch: TextBatch) -> list[tuple[list[int], list[int]]]:
    ids, segments = batch.input_ids.tolist(), batch.token_type_ids.tolist()
    return [(ids[row][:n], segments[row][:n]) for row, n in enumerate(batch.lengths.tolist())]


@given(st.lists(st.integers(1, 40), min_size=1, max_size=12))
def test_every_row_is_in_one_part_as_it_was(lengths: list[int]) -> None:
    batch = batch_of(lengths)
    parts = like_lengths(batch)
    assert sorted(row for part in parts for row in rows_of(part)) == sorted(rows_of(batch))
    for part in parts:
        assert part.input_ids.shape == part.token_type_ids.shape == (len(part.lengths), int(part.lengths.max()))
    assert sum(part.input_ids.numel() for part in parts) <= batch.input_ids.numel()


def test_short_rows_are_cut_off_from_long_ones() -> None:
    long, short = like_lengths(batch_of([128, 7, 120, 10, 128]))
    assert long.lengths.tolist() == [128, 120, 128]
    assert short.lengths.tolist() == [7, 10]
    assert short.input_ids.shape == (2, 10)


def test_rows_of_one_length_stay_together() -> None:
    batch = batch_of([30, 30, 29, 30])
    assert like_lengths(batch) == [batch]
