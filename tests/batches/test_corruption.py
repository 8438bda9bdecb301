"""Which tokens are corrupted, and into what."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsebert.batches.corruption import Corruption, max_predictions
from sparsebert.text import TokenStore

# Ids 0 to 4 are special, 5 to 19 begin words, 20 to 29 continue them.
TABLES = {"is_special": np.arange(30) < 5, "ordinary": np.arange(5, 30), "mask_id": 4}
PIECES = Corruption(continues=None, **TABLES)  # type: ignore[arg-type]
WORDS = Corruption(continues=np.arange(30) >= 20, **TABLES)  # type: ignore[arg-type]

ROWS = st.lists(st.integers(0, 29), min_size=1, max_size=128).map(np.array)


@pytest.mark.parametrize(("length", "most"), [(128, 20), (512, 77), (64, 10)])
def test_a_row_has_as_many_predictions_as_in_bert(length: int, most: int) -> None:
    assert max_predictions(length) == most


@given(ROWS, st.integers(0, 2**32), st.booleans())
def test_special_tokens_are_left_alone_and_the_number_is_right(row: np.ndarray, seed: int, whole: bool) -> None:
    corrupted, positions = (WORDS if whole else PIECES).apply(row, 20, np.random.default_rng(seed))
    candidates = int((row >= 5).sum())
    wanted = min(20, max(1, round(0.15 * candidates)), candidates)
    assert len(positions) <= wanted if whole else len(positions) == wanted
    assert np.all(row[positions] >= 5)
    assert np.all(np.diff(positions) > 0)
    untouched = np.setdiff1d(np.arange(len(row)), positions)
    assert np.array_equal(corrupted[untouched], row[untouched])
    assert not np.isin(corrupted[positions], [0, 1, 2, 3]).any(), "replacements are [MASK] or ordinary"


@given(ROWS, st.integers(0, 2**32))
def test_whole_words_are_corrupted_whole(row: np.ndarray, seed: int) -> None:
    _, positions = WORDS.apply(row, 20, np.random.default_rng(seed))
    chosen = set(positions.tolist())
    for position in range(1, len(row)):
        if row[position] >= 20 and row[position - 1] >= 5:
            assert (position in chosen) == (position - 1 in chosen)


def test_of_the_chosen_80_10_10_become_mask_random_and_the_same() -> None:
    row, draw = np.full(120, 7), np.random.default_rng(0)
    results = [PIECES.apply(row, 20, draw) for _ in range(4000)]
    values = np.concatenate([corrupted[positions] for corrupted, positions in results])
    shares = [np.mean(values == 4), np.mean((values != 4) & (values != 7)), np.mean(values == 7)]
    assert shares == pytest.approx([0.8, 0.1 * 24 / 25, 0.1 + 0.1 / 25], abs=0.01)


def test_the_tables_of_a_store_know_its_pieces(store: TokenStore) -> None:
    tables = Corruption.of(store, whole_words=True)
    tokens = store.tokens()
    assert tables.continues is not None
    assert all(tables.continues[number] == tokens[number].startswith("##") for number in range(store.vocab_size))
    assert np.flatnonzero(tables.is_special).tolist() == [0, 1, 2, 3, 4]
