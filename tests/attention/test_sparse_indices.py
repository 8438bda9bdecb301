"""Indices: crops, transposes, offsets, and the cache that holds them."""

import gc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsebert import patterns
from sparsebert.attention import sparse_indices
from sparsebert.attention.sparse_indices import build_indices, find, indices_for, indices_from_offsets
from sparsebert.attention.sparse_library import is_built
from sparsebert.errors import AttentionError
from sparsebert.patterns import Pattern
from tests.attention.cases import random_patterns

pytestmark = pytest.mark.skipif(not is_built(), reason="the C++ kernel was not built: no C++ compiler")


@settings(max_examples=100)
@given(st.data(), st.integers(1, 40), st.integers(1, 3))
def test_an_index_is_the_cropped_pattern(data: st.DataObject, length: int, heads: int) -> None:
    pattern: Pattern = data.draw(random_patterns(length, heads))
    shorter = data.draw(st.integers(1, length))
    index, cropped = build_indices(pattern, shorter), pattern.crop(shorter)
    assert np.array_equal(index.rows.starts, cropped.row_starts)
    assert np.array_equal(index.rows.others, cropped.keys)
    if index.origin is not None:  # each entry stems from one of the whole pattern, each from another
        assert len(np.unique(index.origin)) == index.kept


@settings(max_examples=100)
@given(st.data(), st.integers(1, 40), st.integers(1, 3))
def test_columns_are_the_transpose_of_rows(data: st.DataObject, length: int, heads: int) -> None:
    pattern: Pattern = data.draw(random_patterns(length, heads))
    index = build_indices(pattern, length)
    for head in range(pattern.heads):
        first = index.rows.starts[head, 0]
        for column in range(length):
            slots = range(index.columns.starts[head, column], index.columns.starts[head, column + 1])
            rows = index.columns.others[slots.start : slots.stop]
            assert (np.diff(rows) > 0).all()
            assert index.columns.entries is not None
            for slot, row in zip(slots, rows, strict=True):
                entry = first + index.columns.entries[slot]
                assert index.rows.others[entry] == column
                assert index.rows.starts[head, row] <= entry < index.rows.starts[head, row + 1]


@settings(max_examples=100)
@given(st.integers(1, 40), st.lists(st.lists(st.integers(-45, 45), max_size=6), min_size=1, max_size=3), st.booleans())
def test_an_index_from_offsets_is_that_of_the_pattern(length: int, offsets: list[list[int]], border: bool) -> None:
    inside = [[offset for offset in head if abs(offset) < length] for head in offsets]
    pattern = patterns.from_offsets(length=length, offsets=inside, border=border)
    index, expected = indices_from_offsets(length, offsets, border), build_indices(pattern, length)
    assert np.array_equal(index.rows.starts, expected.rows.starts)
    assert np.array_equal(index.rows.others, expected.rows.others)


def test_the_cache_is_bounded_and_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse_indices, "_CACHED_BYTES", 20_000)
    pattern = patterns.window(64)
    assert indices_for(pattern, 50) is indices_for(patterns.window(64), 50)
    for length in range(1, 60):
        indices_for(pattern, length)
    held = [index.num_bytes for index in sparse_indices._recent.values()]
    assert 1 < len(held) < 59
    assert sum(held) <= 20_000


def test_an_index_that_fell_out_of_the_cache_is_built_again_by_name() -> None:
    pattern = patterns.window(64)
    name = indices_for(pattern, 61).name
    sparse_indices._recent.clear()
    assert find(name).length == 61


def test_an_index_of_offsets_ends_with_its_holder() -> None:
    index = indices_from_offsets(10, [[1]], border=False)
    name = index.name
    assert find(name) is index
    del index
    gc.collect()
    with pytest.raises(AttentionError, match="keep a reference"):
        find(name)


def test_long_lines_are_listed_and_a_dense_pattern_has_none() -> None:
    border = build_indices(patterns.border(600), 600)
    assert border.rows.longs.tolist() == [[0, 599, -1, -1, -1, -1, -1, -1]]
    assert (build_indices(patterns.full(600), 600).rows.longs == -1).all()
