"""Pattern as a value: algebra, equality, cropping, anchors, refusals."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sparsebert import Pattern, patterns
from sparsebert.errors import PatternError
from sparsebert.patterns.pattern import check_rows


@st.composite
def any_pattern(draw: st.DrawFn, length: int | None = None, heads: int | None = None) -> Pattern:
    length = draw(st.integers(1, 24)) if length is None else length
    heads = draw(st.integers(1, 3)) if heads is None else heads
    name = draw(st.sampled_from(["random", "star", "strided", "fixed", "log_sparse", "border", "window", "full"]))
    if name == "random":
        sparsity = draw(st.floats(0, 1))
        return patterns.random(length, heads, sparsity=sparsity, seed=draw(st.integers(0, 99)))
    return patterns.named(name, length, heads)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Pattern, Pattern]:
    length, heads = draw(st.integers(1, 24)), draw(st.integers(1, 3))
    return draw(any_pattern(length, heads)), draw(any_pattern(length, draw(st.sampled_from([1, heads]))))


@given(pairs())
def test_union_and_intersection_are_those_of_the_dense_pictures(pair: tuple[Pattern, Pattern]) -> None:
    left, right = pair
    assert torch.equal((left | right).keep(), left.keep() | right.keep())
    assert torch.equal((left & right).keep(), left.keep() & right.keep())


@given(pairs(), st.data())
def test_union_and_intersection_form_an_algebra(pair: tuple[Pattern, Pattern], data: st.DataObject) -> None:
    left, right = pair
    third = data.draw(any_pattern(left.length, left.heads))
    assert left | right == right | left
    assert left & right == right & left
    assert left | left == left
    assert (left | right) & left == left
    assert left & (right | third) == (left & right) | (left & third)


@given(any_pattern())
def test_rows_say_what_the_dense_picture_says(pattern: Pattern) -> None:
    keep = pattern.keep().numpy()
    for head in range(pattern.heads):
        for row in range(pattern.length):
            start, stop = pattern.row_starts[head, row : row + 2]
            assert pattern.keys[start:stop].tolist() == np.flatnonzero(keep[head, row]).tolist()
    assert patterns.from_keep(pattern.keep()) == pattern
    assert pattern.sparsity == pytest.approx(1 - keep.mean())


@given(any_pattern(), st.integers(1, 40))
def test_at_agrees_with_rebuilding(pattern: Pattern, length: int) -> None:
    rule = pattern.rule
    assert rule is not None
    rebuilt = patterns.named(rule["builder"], length, pattern.heads, **rule["arguments"])
    assert pattern.at(length) == rebuilt
    assert pattern.without_diagonal().at(length) == rebuilt.without_diagonal()
    assert (pattern | patterns.border(pattern.length)).at(length) == rebuilt | patterns.border(length)


@given(any_pattern())
def test_without_diagonal_drops_the_diagonal_alone(pattern: Pattern) -> None:
    diagonal = torch.eye(pattern.length, dtype=torch.bool)
    assert torch.equal(pattern.without_diagonal().keep(), pattern.keep() & ~diagonal)


def test_random_drop_takes_as_many_from_every_head_apart() -> None:
    dropped = patterns.full(32, heads=3).random_drop(32, seed=1)
    assert [len(dropped.entries(head)) for head in range(3)] == [32 * 32 - 32] * 3
    assert len({tuple(dropped.entries(head)) for head in range(3)}) == 3
    assert dropped == patterns.full(32, heads=3).random_drop(32, seed=1)
    assert dropped != patterns.full(32, heads=3).random_drop(32, seed=2)
    with pytest.raises(PatternError, match="cannot drop 2000"):
        patterns.full(32).random_drop(2000)


def test_a_shorter_input_uses_the_top_left_corner() -> None:
    pattern = patterns.from_offsets(6, [[1]], border=True)
    assert pattern.picture() == "######\n#.#..#\n#..#.#\n#...##\n#....#\n######"
    assert pattern.crop(4).picture() == "####\n#.#.\n#..#\n#..."


def test_a_token_anchor_moves_the_last_row_and_column_to_the_last_token() -> None:
    pattern = patterns.from_offsets(6, [[1]], border=True, anchor="token")
    assert pattern.crop(4).picture() == "####\n#.##\n#..#\n####"
    assert pattern.crop(1).picture() == "#"
    assert pattern.at(5).anchor == "token"


def test_offsets_are_lines_parallel_to_the_diagonal() -> None:
    pattern = patterns.from_offsets(5, [[-1, 1], [2, 99]])
    assert pattern.picture(0) == ".#...\n#.#..\n.#.#.\n..#.#\n...#."
    assert pattern.picture(1) == "..#..\n...#.\n....#\n.....\n....."
    assert pattern.at(3).picture(1) == "..#\n...\n..."


def test_equality_is_about_what_is_kept() -> None:
    assert patterns.star(8) == patterns.from_keep(patterns.star(8).keep())
    assert hash(patterns.star(8)) == hash(patterns.from_keep(patterns.star(8).keep()))
    assert patterns.star(8) != patterns.star(8).anchored("token")
    assert patterns.star(8) != "star"
    assert repr(patterns.star(128)) == "Pattern(star, length=128, heads=1, sparsity=0.9613, keys_per_query=5.0)"


def test_patterns_do_not_change() -> None:
    pattern = patterns.star(8)
    with pytest.raises(ValueError, match="read-only"):
        pattern.keys[0] = 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda: patterns.star(8) | patterns.star(9), "bring both to one length"),
        (lambda: patterns.star(8, heads=2) | patterns.star(8, heads=3), "has 2 heads but 3"),
        (lambda: patterns.star(8).crop(9), r"rebuild it with pattern.at\(9\)"),
        (lambda: patterns.from_keep(torch.ones(1, 2, 2, dtype=torch.bool)).at(4), "no rule to rebuild"),
        (lambda: patterns.from_keep(torch.ones(1, 2, 2, dtype=torch.bool)).crop(4), "no rule for longer ones"),
        (lambda: patterns.from_keep(torch.ones(1, 2, 3, dtype=torch.bool)), "expected bool"),
        (lambda: patterns.from_keep(torch.ones(1, 2, 2)), "expected bool"),
        (lambda: patterns.star(0), "at least 1"),
        (lambda: patterns.named("sun", 8), "no pattern called 'sun'"),
        (lambda: patterns.named("star", 8, rays=3), "no argument 'rays'"),
        (lambda: patterns.random(8, sparsity=1.5), "between 0 and 1"),
        (lambda: patterns.longformer(8, num_globals=9), "9 global tokens among 8"),
        (lambda: patterns.longformer(8, globals_at=[8]), "positions below 8"),
        (lambda: patterns.strided(8, stride=0), "at least 1"),
        (lambda: patterns.fixed(8, summary=5), "between 0 and the stride"),
        (lambda: patterns.star(8).anchored("word"), "expected 'position' or 'token'"),
        (lambda: patterns.star(8).picture(head=1), "no head 1"),
    ],
)
def test_misuse_is_refused_with_a_sentence(change: object, words: str) -> None:
    with pytest.raises(PatternError, match=words):
        change()  # type: ignore[operator]


@pytest.mark.parametrize(
    ("starts", "keys"),
    [
        ([[0, 2, 4]], [0, 1, 0, 2]),  # past the length
        ([[0, 2, 4]], [0, 1, 0, -1]),
        ([[0, 2, 4]], [1, 0, 0, 1]),  # unsorted
        ([[0, 2, 4]], [0, 0, 0, 1]),  # twice
        ([[0, 3, 2]], [0, 1]),  # rows overlap
        ([[1, 2, 4]], [0, 1, 0, 1]),
        ([[0, 2, 9]], [0, 1, 0, 1]),
        ([[0, 2]], [0, 1]),
    ],
)
def test_rows_that_are_not_rows_are_refused(starts: list[list[int]], keys: list[int]) -> None:
    with pytest.raises(PatternError):
        check_rows(1, 2, np.array(starts, dtype=np.int64), np.array(keys, dtype=np.int32))
