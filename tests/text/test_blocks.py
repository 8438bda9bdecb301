"""Cutting at document ends, the same way however the bytes arrive."""

from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsebert.errors import CorpusError
from sparsebert.text import blocks
from sparsebert.text.blocks import _Cutter, cut
from sparsebert.text.sources import Source, find_sources

SOURCE = Source("a.txt", "text", "a.txt", None, None)


def _cut(pieces: list[bytes], source: Source = SOURCE, *, skip_bad: bool = False) -> list[tuple[int, bytes]]:
    cutter = _Cutter(source, skip_bad, Counter())
    found = [block for piece in pieces for block in cutter.feed(piece)] + list(cutter.finish())
    return [(block.first_line, block.data) for block in found]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 6)
    monkeypatch.setattr(blocks, "MAX_DOCUMENT_BYTES", 30)


@pytest.mark.usefixtures("small")
def test_a_block_ends_after_the_first_blank_line_beyond_its_size() -> None:
    assert _cut([b"a\nb\n\nlonger\nline\n \t\nc\n\nd"]) == [(1, b"a\nb\n\nlonger\nline\n \t\n"), (7, b"c\n\nd")]


@pytest.mark.usefixtures("small")
@given(
    data=st.lists(st.sampled_from([b"a", b"bb", b"\n", b"\n\n", b" ", b"\r\n"]), max_size=40).map(b"".join),
    cuts=st.lists(st.integers(0, 80), max_size=6),
)
def test_blocks_do_not_depend_on_how_bytes_arrive(data: bytes, cuts: list[int]) -> None:
    edges = sorted({0, len(data), *(min(edge, len(data)) for edge in cuts)})
    try:
        whole = _cut([data])
    except CorpusError:
        return
    pieces = [data[start:stop] for start, stop in pairwise(edges)]
    assert _cut(pieces) == whole
    assert b"".join(block for _, block in whole) == data


@pytest.mark.usefixtures("small")
def test_a_document_that_never_ends_is_refused_by_its_first_line() -> None:
    with pytest.raises(CorpusError, match=r"a\.txt, line 3: the document that starts here is longer than 30 bytes"):
        _cut([b"a\n\n"] + [b"more\n"] * 20)


@pytest.mark.usefixtures("small")
def test_a_document_that_never_ends_is_dropped_and_counted_when_skipping() -> None:
    cutter = _Cutter(SOURCE, True, Counter())
    found = [block for piece in [b"a\n\n", *[b"more\n"] * 20, b"\nb\n"] for block in cutter.feed(piece)]
    found += list(cutter.finish())
    assert [(block.first_line, block.data) for block in found] == [(1, b"a\n\n"), (24, b"b\n")]
    assert cutter.skipped == {"document_too_long": 1}


def test_positions_reach_the_size_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"a cat\n\nand a dog\n")
    source = find_sources([str(tmp_path / "a.txt")])[0]
    assert [block.position for block in cut(source, skip_bad=False, skipped=Counter())] == [source.num_bytes]
