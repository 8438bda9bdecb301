"""Plain rows: every kind of input, nothing corrupted, the same rows whoever makes them."""

import numpy as np
import pytest
import torch

from sparsebert.batches import PlainBatches, TextBatch
from sparsebert.errors import ConfigError
from sparsebert.text import TokenStore


def _batches(store: TokenStore, **settings: object) -> PlainBatches:
    return PlainBatches(store, **{"batch_size": 8, "length": 32, "seed": 3, **settings})  # type: ignore[arg-type]


def _same(one: TextBatch, other: TextBatch) -> bool:
    names = ("input_ids", "token_type_ids", "lengths")
    return all(torch.equal(getattr(one, name), getattr(other, name)) for name in names)


def test_a_batch_needs_none_before_it_and_depends_on_seed_and_step(store: TokenStore) -> None:
    batches = _batches(store)
    in_order = [batches.batch(step) for step in range(4)]
    assert _same(_batches(store).batch(3), in_order[3])
    assert not _same(in_order[2], in_order[3])
    assert not _same(_batches(store, seed=4).batch(3), in_order[3])


def test_ranks_share_the_rows_of_the_global_batch(store: TokenStore) -> None:
    whole = _batches(store).batch(1)
    parts = [_batches(store, rank=rank, ranks=2).batch(1) for rank in range(2)]
    assert torch.equal(torch.cat([part.lengths for part in parts]), whole.lengths)
    for number, part in enumerate(parts):
        rows = whole.input_ids[4 * number : 4 * number + 4, : part.input_ids.shape[1]]
        assert torch.equal(part.input_ids, rows)


def test_rows_are_framed_and_padded_behind_their_length(store: TokenStore) -> None:
    special = store.special
    for step in range(5):
        batch = _batches(store).batch(step)
        assert batch.input_ids.shape[1] == int(batch.lengths.max()) <= 32
        for ids, kinds, length in zip(batch.input_ids, batch.token_type_ids, batch.lengths.tolist(), strict=True):
            assert ids[0] == special.cls
            assert ids[length - 1] == special.sep
            assert (ids[length:] == special.pad).all()
            assert (kinds[length:] == 0).all()
            assert special.mask not in ids


def test_a_second_text_is_told_apart_and_ends_in_its_own_separator(store: TokenStore) -> None:
    batch = _batches(store, full=0.0, batch_size=64).batch(0)
    pairs = (batch.token_type_ids == 1).any(1)
    assert 0.15 < pairs.double().mean() < 0.6  # a third of what is not full
    for ids, kinds, length in zip(
        batch.input_ids[pairs], batch.token_type_ids[pairs], batch.lengths[pairs].tolist(), strict=True
    ):
        second = int(kinds.argmax())
        assert ids[second - 1] == store.special.sep
        assert (kinds[second:length] == 1).all()
        assert (ids[:length] == store.special.sep).sum() == 2


def test_all_rows_are_full_where_documents_are_long_enough(store: TokenStore) -> None:
    batch = _batches(store, full=1.0, batch_size=32, length=12).batch(0)
    assert (batch.lengths == 12).double().mean() > 0.9


def test_text_is_what_the_corpus_holds_in_its_order(store: TokenStore) -> None:
    """A full row is a stretch of one document."""
    documents = [
        store.shard(number).shard.ids[start:end].tolist()
        for number in range(len(store.shards))
        for shard in [store.shard(number).shard]
        for start, end in zip(
            shard.sentences[shard.documents[:-1]].tolist(), shard.sentences[shard.documents[1:]].tolist(), strict=True
        )
    ]
    for row in range(8):
        (text,) = _batches(store, full=1.0).row(0, row)
        assert any(_is_inside(np.asarray(text).tolist(), document) for document in documents)


def _is_inside(part: list[int], whole: list[int]) -> bool:
    return any(whole[start : start + len(part)] == part for start in range(len(whole) - len(part) + 1))


def test_a_step_before_the_first_is_refused(store: TokenStore) -> None:
    with pytest.raises(ConfigError, match="steps count from 0"):
        _batches(store).batch(-1)
