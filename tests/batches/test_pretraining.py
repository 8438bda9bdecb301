"""A batch is a function of (seed, step): same everywhere, whoever makes it, in whatever order."""

import hashlib
import subprocess
import sys
from dataclasses import fields

import numpy as np
import pytest
import torch

from sparsebert.batches import PretrainingBatch, PretrainingBatches
from sparsebert.errors import ConfigError
from sparsebert.text import TokenStore
from tests.conftest import PROJECT


def _digest(batch: PretrainingBatch) -> str:
    parts = [getattr(batch, field.name).numpy().tobytes() for field in fields(batch)]
    return hashlib.sha256(b"".join(parts)).hexdigest()


def _batches(store: TokenStore, **settings: object) -> PretrainingBatches:
    return PretrainingBatches(store, **{"batch_size": 8, "length": 64, "seed": 3, **settings})  # type: ignore[arg-type]


def test_a_fresh_process_makes_the_same_batch_without_the_ones_before(store: TokenStore) -> None:
    script = (
        "import sys; from sparsebert.text import TokenStore;"
        "from tests.batches.test_pretraining import _batches, _digest;"
        "print(_digest(_batches(TokenStore.open(sys.argv[1])).batch(7)))"
    )
    command = [sys.executable, "-c", script, str(store.path)]
    made = subprocess.run(command, capture_output=True, text=True, check=True, cwd=PROJECT)
    batches = _batches(store)
    in_order = [_digest(batches.batch(step)) for step in range(9)]
    assert made.stdout.strip() == in_order[7]
    assert len(set(in_order)) == 9


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("split", ["train", "held_out"])
def test_the_ranks_together_make_the_batch_of_one(store: TokenStore, ranks: int, split: str) -> None:
    whole = _batches(store, split=split).batch(5)
    parts = [_batches(store, split=split, rank=rank, ranks=ranks).batch(5) for rank in range(ranks)]
    for name in ("input_ids", "token_type_ids", "lengths", "predicted_ids", "next_sentence"):
        assert torch.equal(torch.cat([getattr(part, name) for part in parts]), getattr(whole, name))
    size = whole.input_ids.numel() // ranks
    shifted = [part.predicted_positions + rank * size for rank, part in enumerate(parts)]
    assert torch.equal(torch.cat(shifted), whole.predicted_positions)


def test_a_row_reads_cls_a_sep_b_sep_and_padding(store: TokenStore) -> None:
    batches = _batches(store)
    special = store.special
    for step in range(5):
        batch = batches.batch(step)
        original = batch.input_ids.clone().flatten()
        original[batch.predicted_positions] = batch.predicted_ids
        for row, tokens in enumerate(original.view_as(batch.input_ids)):
            pair, length = batches.pair(step, row), int(batch.lengths[row])
            expected = [special.cls, *pair.first.tolist(), special.sep, *pair.second.tolist(), special.sep]
            assert tokens[:length].tolist() == expected
            assert (tokens[length:] == special.pad).all()
            types = [0] * (len(pair.first) + 2) + [1] * (len(pair.second) + 1) + [0] * (64 - length)
            assert batch.token_type_ids[row].tolist() == types
            assert int(batch.next_sentence[row]) == int(pair.is_random)


def test_the_shares_are_those_of_bert(store: TokenStore) -> None:
    batches = _batches(store, batch_size=32, length=128)
    special = torch.tensor(store.special.all())
    predicted = candidates = masked = kept = random_pairs = rows = 0
    for step in range(60):
        batch = batches.batch(step)
        flat = batch.input_ids.flatten()
        original = flat.clone()
        original[batch.predicted_positions] = batch.predicted_ids
        candidates += int((~torch.isin(original, special)).sum())
        predicted += len(batch.predicted_ids)
        seen = flat[batch.predicted_positions]
        masked += int((seen == store.special.mask).sum())
        kept += int((seen == batch.predicted_ids).sum())
        random_pairs += int(batch.next_sentence.sum())
        rows += 32
        assert not torch.isin(batch.predicted_ids, special).any()
        assert torch.bincount(batch.predicted_positions // 128, minlength=32).max() <= 20
        pairs = [batches.pair(step, row) for row in range(32)]
        assert all(pair.is_random == (pair.documents[0] != pair.documents[1]) for pair in pairs)
    assert predicted / candidates == pytest.approx(0.15, abs=0.005)
    assert masked / predicted == pytest.approx(0.8, abs=0.015)
    assert kept / predicted == pytest.approx(0.1, abs=0.015)
    assert random_pairs / rows == pytest.approx(0.5, abs=4 * 0.5 / np.sqrt(rows))


def test_whole_words_change_what_is_corrupted_and_not_the_text(store: TokenStore) -> None:
    pieces, words = _batches(store), _batches(store, whole_words=True)
    assert pieces.pair(2, 3).first.tolist() == words.pair(2, 3).first.tolist()
    assert _digest(pieces.batch(2)) != _digest(words.batch(2))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"length": 4}, "cannot hold a pair"),
        ({"split": "test"}, "no split called test"),
        ({"rank": 2, "ranks": 2}, "rank 2 of 2"),
        ({"batch_size": 7, "ranks": 2}, "choose a multiple of 2"),
        ({"batch_size": 0}, "choose a multiple"),
    ],
)
def test_settings_that_cannot_work_are_refused(store: TokenStore, settings: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        _batches(store, **settings)


def test_a_step_before_the_first_is_refused(store: TokenStore) -> None:
    with pytest.raises(ConfigError, match="steps count from 0"):
        _batches(store).batch(-1)
