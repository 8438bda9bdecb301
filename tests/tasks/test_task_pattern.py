"""A pattern is brought to the task's length, or refused with a choice."""

import pytest

from sparsebert import patterns
from sparsebert.errors import PatternError
from sparsebert.tasks.task_pattern import has_border, pattern_for

_OFFSETS = [[-1, 1], [-4, -1, 1, 4]]


def test_a_name_is_built_at_the_tasks_length() -> None:
    pattern = pattern_for("star", length=384, heads=12)
    assert pattern == patterns.star(384, 12)


def test_offsets_are_rebuilt_for_longer_windows() -> None:
    short = patterns.from_offsets(length=128, offsets=_OFFSETS, border=True)
    pattern = pattern_for(short, length=384, heads=2)
    assert pattern == patterns.from_offsets(length=384, offsets=_OFFSETS, border=True).anchored("token")


def test_single_entries_on_longer_windows_are_refused_with_both_ways_out() -> None:
    learned = patterns.full(128).random_drop(128)
    with pytest.raises(
        PatternError, match=r"SQuAD v1.1 reads 384 tokens; choose length 128 .* or a pattern that a rule"
    ):
        pattern_for(learned, length=384, heads=1, what="SQuAD v1.1")


def test_a_longer_pattern_is_left_as_it_is() -> None:
    assert pattern_for(patterns.star(512), length=128, heads=1) == patterns.star(512)


def test_only_a_border_moves_to_the_true_last_token_by_itself() -> None:
    bordered = patterns.from_offsets(length=16, offsets=[[-1, 1]], border=True)
    assert has_border(bordered)
    assert has_border(bordered.without_diagonal())
    assert not has_border(patterns.star(16))
    for pattern, expected in ((bordered, "token"), (patterns.star(16), "position")):
        fitted = pattern_for(pattern, length=16, heads=1)
        assert fitted is not None
        assert fitted.anchor == expected


def test_an_anchor_that_was_asked_for_is_taken() -> None:
    bordered = patterns.from_offsets(length=16, offsets=[[-1, 1]], border=True)
    fitted = pattern_for(bordered, length=16, heads=1, anchor="position")
    assert fitted is not None
    assert fitted.anchor == "position"


def test_no_pattern_stays_none() -> None:
    assert pattern_for(None, length=16, heads=1) is None


def test_a_border_counts_only_where_every_layer_has_it() -> None:
    bordered = patterns.from_offsets(8, [[0]], border=True)
    both = patterns.per_layer([bordered, bordered | patterns.star(8)])
    fitted = pattern_for(both, length=8, heads=1)
    assert fitted is not None
    assert (fitted.anchor, fitted.layers) == ("token", 2)
    one = pattern_for(patterns.per_layer([bordered, patterns.window(8)]), length=8, heads=1)
    assert one is not None
    assert one.anchor == "position"
