"""Sentence pairs: where they start, where they end, and what may follow what."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsebert.batches.pairs import draw_pair, kept, truncate
from sparsebert.batches.sentence_places import SentencePlaces
from sparsebert.errors import CorpusError
from sparsebert.text import TokenStore
from tests.batches.conftest import handmade_store

# Token 10 d + s is sentence s of document d, repeated.
DOCUMENTS = [[[10 * number + sentence] * (sentence + 1) for sentence in range(5)] for number in range(1, 7)]


def _pairs(store: TokenStore, length: int, count: int = 300) -> list[tuple[list[int], list[int], bool]]:
    places = SentencePlaces(store, "train")
    drawn = [draw_pair(places, length, np.random.default_rng(number)) for number in range(count)]
    return [(pair.first.tolist(), pair.second.tolist(), pair.is_random) for pair in drawn]


def test_a_true_pair_is_consecutive_text_of_one_document(tmp_path: Path) -> None:
    whole = {number: [token for sentence in DOCUMENTS[number - 1] for token in sentence] for number in range(1, 7)}
    for first, second, is_random in _pairs(handmade_store(tmp_path, DOCUMENTS), 30):
        assert min(len(first), len(second)) > 0
        if not is_random:
            text = whole[first[0] // 10]
            assert any(text[start : start + len(first + second)] == first + second for start in range(len(text)))
            assert first[-1] != second[0], "a segment ends where a sentence ends"


def test_a_random_pair_is_never_of_one_document(tmp_path: Path) -> None:
    pairs = _pairs(handmade_store(tmp_path, DOCUMENTS), 30)
    random = [(first, second) for first, second, is_random in pairs if is_random]
    assert 100 < len(random) < 200
    assert all(first[0] // 10 != second[0] // 10 for first, second in random)
    assert {second[0] // 10 for _, second in random} == {1, 2, 3, 4, 5, 6}


def test_every_place_points_to_the_sentence_of_its_token(tmp_path: Path) -> None:
    places = SentencePlaces(handmade_store(tmp_path, DOCUMENTS), "train")
    tokens = [token for document in DOCUMENTS for sentence in document for token in sentence]
    assert places.num_tokens == len(tokens)
    for position, token in enumerate(tokens):
        place = places.at(position)
        assert set(place.shard.sentence(place.sentence).tolist()) == {token}
        assert place.start == 15 * (token // 10 - 1)


def test_held_out_and_training_documents_never_meet(tmp_path: Path) -> None:
    hashes = [2**63 + number if number % 2 else number for number in range(6)]
    store = handmade_store(tmp_path, DOCUMENTS, hashes)
    held_out = SentencePlaces(store, "held_out")
    assert {
        int(held_out.at(position).shard.sentence(held_out.at(position).sentence)[0]) // 10 for position in range(45)
    } == {1, 3, 5}
    assert {token // 10 for first, second, _ in _pairs(store, 30) for token in first + second} == {2, 4, 6}


def test_a_document_of_one_sentence_gives_random_pairs(tmp_path: Path) -> None:
    store = handmade_store(tmp_path, [[[10] * 50], [[20] * 3], *DOCUMENTS[2:]])
    lonely = [is_random for first, _, is_random in _pairs(store, 30) if first[0] in (10, 20)]
    assert len(lonely) > 50
    assert all(lonely)


def test_a_copy_of_a_document_is_no_random_next(tmp_path: Path) -> None:
    store = handmade_store(tmp_path, [DOCUMENTS[0]] * 5 + [DOCUMENTS[5]], [2**63] * 5 + [2**63 + 1])
    assert all(first[0] // 10 != second[0] // 10 for first, second, is_random in _pairs(store, 30) if is_random)
    same = handmade_store(tmp_path / "same", [DOCUMENTS[0]] * 4, [2**63] * 4)
    with pytest.raises(CorpusError, match="one document over and over"):
        _pairs(same, 30)


def test_one_document_is_too_few(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"held-out part .* has 0 documents"):
        SentencePlaces(handmade_store(tmp_path, DOCUMENTS), "held_out")


@given(st.integers(1, 60), st.integers(1, 60), st.integers(2, 60))
def test_what_is_kept_is_what_berts_loop_keeps(first: int, second: int, room: int) -> None:
    expected = [first, second]
    while sum(expected) > room:
        expected[0 if expected[0] > expected[1] else 1] -= 1
    assert kept(first, second, room) == tuple(expected)


@given(st.integers(0, 2**32))
def test_truncation_takes_from_both_ends_and_keeps_the_middle(seed: int) -> None:
    first, second = truncate(np.arange(40), np.arange(100, 130), 20, np.random.default_rng(seed))
    assert (len(first), len(second)) == (10, 10)
    assert np.all(np.diff(first) == 1)
    assert np.all(np.diff(second) == 1)
