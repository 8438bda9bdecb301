"""Rankings: one file, a pattern of any sparsity, each inside the denser ones."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsebert import Pattern, patterns
from sparsebert.errors import PatternError, SparseBertError
from sparsebert.files import open_sealed_tensors, seal_tensors
from sparsebert.patterns import Ranking
from sparsebert.patterns.storage import from_bytes, to_bytes

SOMEWHERE = Path("pattern.safetensors")


@st.composite
def whole_rankings(draw: st.DrawFn) -> tuple[int, int, int, list[tuple[int, int, int]]]:
    """Length, heads, layers and every line inside the border in some order."""
    length, heads, layers = draw(st.integers(3, 12)), draw(st.integers(1, 2)), draw(st.integers(1, 3))
    lines = [(i, j, d) for i in range(layers) for j in range(heads) for d in range(length - 2)]
    return length, heads, layers, draw(st.permutations(lines))


def test_the_first_lines_are_kept_inside_the_border() -> None:
    ranking = [(0, 0, 1), (0, 0, 0), (0, 0, 2)]
    pattern = patterns.from_ranking(5, 1, 1, ranking, sparsity=0.2)
    assert pattern.picture() == "#####\n#.#.#\n##.##\n#.#.#\n#####"
    assert pattern.at_sparsity(0.36).picture() == "#####\n#...#\n#...#\n#...#\n#####"
    assert pattern.at_sparsity(0.08).picture() == "#####\n###.#\n#####\n#.###\n#####"
    assert pattern.at_sparsity(0.0) == patterns.full(5)


def test_lines_are_of_their_head_and_layer_alone() -> None:
    ranking = [(1, 0, 0), (0, 1, 1)]
    pattern = patterns.from_ranking(3, 2, 2, ranking, sparsity=30 / 36, border=False)
    assert (pattern.layers, pattern.heads, pattern.kept) == (2, 2, 7)
    assert pattern.picture(1, layer=0) == ".#.\n#.#\n.#."
    assert pattern.picture(0, layer=1) == "#..\n.#.\n..#"
    assert pattern.picture(0, layer=0) == pattern.picture(1, layer=1) == "...\n...\n..."


@given(whole_rankings(), st.floats(0, 1), st.floats(0, 1))
def test_what_a_sparser_pattern_keeps_a_denser_one_keeps(
    ranked: tuple[int, int, int, list[tuple[int, int, int]]], one: float, other: float
) -> None:
    length, heads, layers, ranking = ranked
    densest = patterns.from_ranking(length, heads, layers, ranking, sparsity=0.0)
    assert densest.sparsity == 0.0
    highest = (length - 2) ** 2 / length**2
    low, high = sorted((one * highest, other * highest))
    sparser, denser = densest.at_sparsity(high), densest.at_sparsity(low)
    assert sparser | denser == denser
    step = 2 * (length - 3) / (layers * heads * length**2) if length > 3 else 1 / length**2
    assert abs(sparser.sparsity - high) <= max(step, 1 / length**2)


@given(whole_rankings())
def test_lines_are_as_large_as_they_are_said_to_be(
    ranked: tuple[int, int, int, list[tuple[int, int, int]]],
) -> None:
    length, heads, layers, lines = ranked
    for border in (True, False):
        ranking = Ranking(np.array(lines, np.int32), border)
        for count in (0, 1, len(lines)):
            kept = layers * heads * ranking.always(length) + int(ranking.sizes(length)[:count].sum())
            sparsity = 1 - kept / (layers * heads * length**2)
            assert patterns.from_ranking(length, heads, layers, ranking, sparsity=sparsity).kept == kept


def test_another_length_keeps_the_lines_and_the_ranking() -> None:
    ranking = [(0, 0, 1), (1, 0, 0), (1, 0, 3), (0, 0, 2)]
    pattern = patterns.from_ranking(8, 1, 2, ranking, sparsity=0.46)
    longer = pattern.at(16)
    assert longer == patterns.per_layer(
        [patterns.from_offsets(16, [[-1, 1]], border=True), patterns.from_offsets(16, [[0]], border=True)]
    )
    assert longer.ranking is pattern.ranking
    assert pattern.at(3).ranking is pattern.ranking
    assert longer.anchored("token").ranking is pattern.ranking
    assert longer.at_sparsity(longer.sparsity) == longer


def test_a_ranking_is_saved_and_changes_neither_digest_nor_equality(tmp_path: Path) -> None:
    pattern = patterns.from_ranking(8, 2, 1, [(0, 0, 1), (0, 1, 0)], sparsity=0.5).anchored("token")
    plain = patterns.from_keep(pattern.keep(), anchor="token")
    assert pattern == plain
    assert pattern.digest == plain.digest
    pattern.save(tmp_path / "p.safetensors")
    loaded = Pattern.load(tmp_path / "p.safetensors")
    assert loaded == pattern
    assert loaded.ranking is not None
    assert loaded.ranking.units.tolist() == [[0, 0, 1], [0, 1, 0]]
    assert loaded.at_sparsity(0.5) == pattern
    assert to_bytes(loaded) == to_bytes(pattern)


def test_a_directed_ranking_names_single_offsets_and_is_saved(tmp_path: Path) -> None:
    units = np.array([[0, 0, 2], [0, 0, -5], [0, 0, -1], [0, 0, 0]], np.int32)  # 2, -1, the left side, 0
    ranking = Ranking(units, directed=True)
    assert ranking.sizes(6).tolist() == [2, 3, 6, 4]
    pattern = patterns.from_ranking(6, 1, 1, ranking, sparsity=1 - 5 / 36)
    assert pattern.picture() == "......\n...#..\n.#..#.\n..#...\n...#..\n......"
    pattern.save(tmp_path / "p.safetensors")
    loaded = Pattern.load(tmp_path / "p.safetensors")
    assert to_bytes(loaded) == to_bytes(pattern)
    assert loaded.at_sparsity(1 - 11 / 36).picture() == "#.....\n#..#..\n##..#.\n#.#...\n#..#..\n#....."
    assert loaded.at_sparsity(0.6).at(8) == patterns.from_offsets(8, [[-1, 0, 2]], sides=[["left"]])


def test_what_changes_entries_leaves_the_ranking_behind() -> None:
    pattern = patterns.from_ranking(8, 1, 1, [(0, 0, 1), (0, 0, 0)], sparsity=0.4)
    for changed in (pattern | patterns.star(8), pattern.without_diagonal(), pattern.crop(5), pattern.random_drop(1)):
        assert changed.ranking is None


@pytest.mark.parametrize(
    "ranking",
    [
        np.array([[0, 0, 1], [0, 0, 1]], np.int32),
        np.array([[0, 9, 1]], np.int32),
        np.array([[9, 0, 1]], np.int32),
        np.array([[0, 0, -5]], np.int32),
        np.array([[0, 0, 1]], np.int64),
        np.array([0, 0, 1], np.int32),
    ],
)
def test_well_sealed_nonsense_is_refused_before_use(ranking: np.ndarray) -> None:
    data = to_bytes(patterns.from_ranking(4, 1, 1, [(0, 0, 1), (0, 0, 0)], sparsity=0.1))
    tensors, about = open_sealed_tensors(data, SOMEWHERE)
    with pytest.raises(SparseBertError):
        from_bytes(seal_tensors({**tensors, "ranking": ranking}, about), SOMEWHERE, Pattern)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda: patterns.star(8).at_sparsity(0.9), "carries no ranking"),
        (lambda: patterns.from_ranking(8, 1, 1, [(0, 0, 0)], sparsity=0.1), "its own go from 0.4688 to 0.5625"),
        (lambda: patterns.from_ranking(8, 1, 1, [(0, 0, 0)], sparsity=0.9), "its own go from"),
        (lambda: patterns.from_ranking(8, 1, 1, [(0, 0, 0)], sparsity=2.0), "between 0 and 1"),
        (lambda: patterns.from_ranking(8, 1, 0, [], sparsity=0.5), "layers=0"),
        (lambda: patterns.from_ranking(8, 1, 1, [(0, 1, 0)], sparsity=0.5), "reaches layer 0 and head 1"),
        (lambda: patterns.from_ranking(8, 1, 1, [(0, 0, 0.5)], sparsity=0.5), "whole numbers"),
        (lambda: patterns.from_ranking(8, 1, 1, [(0, 0)], sparsity=0.5), "expected int32"),
    ],
)
def test_misuse_is_refused_with_a_sentence(change: object, words: str) -> None:
    with pytest.raises(PatternError, match=words):
        change()  # type: ignore[operator]
