"""Indices: crops, transposes, the cache that holds them, and rows that are no pattern's."""

import gc
from collections import OrderedDict

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from sparsebert import attend, patterns
from sparsebert.attention import sparse_indices
from sparsebert.attention.sparse_indices import (
    ENTRIES,
    LONGS,
    OTHERS,
    STARTS,
    Indices,
    indices_for,
    rows_of,
)
from sparsebert.attention.sparse_library import is_built, library
from sparsebert.errors import AttentionError
from sparsebert.patterns import Pattern
from tests.attention.cases import random_patterns

pytestmark = pytest.mark.skipif(not is_built(), reason="the C++ kernel was not built: no C++ compiler")


def build(pattern: Pattern, length: int) -> Indices:
    return Indices(*rows_of(pattern), pattern.anchor == "token", length)


def starts_and_others(index: Indices, columns: bool) -> tuple[np.ndarray, np.ndarray]:
    starts = index.part(columns, STARTS, np.int64).reshape(index.heads, index.length + 1)
    return starts, index.part(columns, OTHERS, np.int32)


def cached(pattern: Pattern, length: int) -> Indices:
    return indices_for(*rows_of(pattern), pattern.digest, pattern.anchor == "token", length)


@settings(max_examples=100)
@given(st.data(), st.integers(1, 40), st.integers(1, 3))
def test_an_index_is_the_cropped_pattern(data: st.DataObject, length: int, heads: int) -> None:
    pattern: Pattern = data.draw(random_patterns(length, heads))
    shorter = data.draw(st.integers(1, length))
    index, cropped = build(pattern, shorter), pattern.crop(shorter)
    starts, keys = starts_and_others(index, columns=False)
    assert np.array_equal(starts, cropped.row_starts)
    assert np.array_equal(keys, cropped.keys)
    if index.origin is not None:  # each entry stems from one of the whole pattern, each from another
        assert len(index.origin.unique()) == index.kept


@settings(max_examples=100)
@given(st.data(), st.integers(1, 40), st.integers(1, 3))
def test_columns_are_the_transpose_of_rows(data: st.DataObject, length: int, heads: int) -> None:
    pattern: Pattern = data.draw(random_patterns(length, heads))
    index = build(pattern, length)
    row_starts, keys = starts_and_others(index, columns=False)
    column_starts, queries = starts_and_others(index, columns=True)
    entries = index.part(1, ENTRIES, np.int32)
    for head in range(pattern.heads):
        first = row_starts[head, 0]
        for column in range(length):
            slots = range(column_starts[head, column], column_starts[head, column + 1])
            rows = queries[slots.start : slots.stop]
            assert (np.diff(rows) > 0).all()
            for slot, row in zip(slots, rows, strict=True):
                entry = first + entries[slot]
                assert keys[entry] == column
                assert row_starts[head, row] <= entry < row_starts[head, row + 1]


def test_the_cache_is_bounded_and_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse_indices, "_CACHED_BYTES", 20_000)
    monkeypatch.setattr(sparse_indices, "_recent", OrderedDict())
    pattern = patterns.window(64)
    assert cached(pattern, 50) is cached(patterns.window(64), 50)
    for length in range(1, 60):
        cached(pattern, length)
    held = [index.num_bytes for index in sparse_indices._recent.values()]
    assert 1 < len(held) < 59
    assert sum(held) <= 20_000


def test_layers_that_take_turns_find_their_indices_however_small_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse_indices, "_CACHED_BYTES", 1)
    layers = patterns.per_layer([patterns.window(64, radius=radius) for radius in (1, 2, 3, 1, 2, 3)])
    first = [cached(layers.layer(number), 50) for number in range(6)]
    assert [cached(layers.layer(number), 50) for number in range(6)] == first
    assert first[0] is first[3]
    for number in range(6):  # another length takes the place of the first
        cached(layers.layer(number), 40)
    mine = {layers.layer(number).digest for number in range(6)}
    assert [length for digest, length in sparse_indices._recent if digest in mine] == [40, 40, 40]
    del layers
    gc.collect()
    cached(patterns.star(64), 50)
    assert [length for digest, length in sparse_indices._recent if digest in mine] == []


def test_an_index_ends_with_its_holder() -> None:
    index = build(patterns.window(10), 10)
    number = index.number
    assert library().sb_index_count(number, 0, 0) == 11
    del index
    gc.collect()
    assert library().sb_index_count(number, 0, 0) < 0


def test_long_lines_are_listed_and_a_dense_pattern_has_none() -> None:
    assert build(patterns.border(600), 600).part(0, LONGS, np.int32).tolist() == [0, 599, -1, -1, -1, -1, -1, -1]
    assert (build(patterns.full(600), 600).part(0, LONGS, np.int32) == -1).all()


def rows(starts: list[list[int]], keys: list[int]) -> tuple[Tensor, Tensor]:
    return torch.tensor(starts), torch.tensor(keys, dtype=torch.int32)


@pytest.mark.parametrize(
    ("starts", "keys"),
    [
        ([[0, 1, 3]], [0, 0, 2]),  # a key outside
        ([[0, 1, 3]], [0, -1, 1]),
        ([[0, 1, 3]], [0, 1, 0]),  # not rising
        ([[0, 1, 9]], [0, 0, 1]),  # more entries than there are
        ([[0, 1, 2]], [0, 0, 1]),  # fewer
        ([[0, 2, 1]], [0]),  # falling
        ([[1, 1, 1]], [0]),  # not from the first on
        ([[0, 1, 1], [0, 1, 1]], [0]),  # heads that overlap
    ],
)
def test_rows_that_are_no_patterns_are_refused(starts: list[list[int]], keys: list[int]) -> None:
    with pytest.raises(AttentionError, match="no pattern's"):
        Indices(*rows(starts, keys), False, 2)


def test_an_index_longer_than_its_pattern_is_refused() -> None:
    with pytest.raises(AttentionError, match="sizes"):
        build(patterns.window(8), 9)


def test_rows_under_another_patterns_name_are_refused() -> None:
    with pytest.raises(AttentionError, match="not the pattern's"):
        indices_for(*rows_of(patterns.window(8)), patterns.window(9).digest, False, 8)


@pytest.mark.parametrize("backend", ["sparse", "sdpa"])
def test_what_an_inference_leaves_in_the_cache_can_be_trained_with(backend: str) -> None:
    pattern, query = patterns.window(24, radius=3), torch.randn(1, 2, 24, 8)
    with torch.inference_mode():
        attend(query, query, query, pattern=pattern, backend=backend)
    query.requires_grad_()
    attend(query, query, query, pattern=pattern, backend=backend).sum().backward()
    assert query.grad is not None
