"""The baseline of a window inside the border, by its radius or by a budget."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsebert import patterns
from sparsebert.errors import PatternError


def test_a_window_lies_inside_the_border() -> None:
    assert patterns.window_border(6, radius=1).picture() == "######\n###..#\n####.#\n#.####\n#..###\n######"
    assert patterns.window_border(32) == patterns.window(32, radius=4) | patterns.border(32)


@given(st.integers(1, 40), st.integers(0, 45), st.integers(1, 3))
def test_it_is_the_union_of_both_at_any_length(length: int, radius: int, heads: int) -> None:
    pattern = patterns.window_border(length, heads, radius=radius)
    assert pattern == patterns.window(length, heads, radius=radius) | patterns.border(length)
    assert pattern.at(17) == patterns.window_border(17, heads, radius=radius)


@given(st.integers(3, 40), st.floats(0, 1))
def test_no_other_radius_comes_nearer_to_a_sparsity(length: int, share: float) -> None:
    each = [patterns.window_border(length, radius=radius).sparsity for radius in range(length)]
    sparsity = share * each[0]
    found = patterns.window_border(length, sparsity=sparsity)
    assert abs(found.sparsity - sparsity) == pytest.approx(min(abs(one - sparsity) for one in each))
    assert found.rule is not None
    assert found.rule["arguments"].keys() == {"radius"}


def test_a_budget_may_be_told_in_keys_a_query() -> None:
    pattern = patterns.named("window_border", 512, keys=32)
    assert pattern.rule is not None
    assert pattern.rule["arguments"] == {"radius": 14}
    assert pattern.keys_per_query == pytest.approx(32.5, abs=0.1)
    assert patterns.window_border(512, keys=512).sparsity == 0
    assert patterns.window_border(2, sparsity=0.0).sparsity == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"radius": 2, "keys": 9}, "one of radius, sparsity and keys"),
        ({"sparsity": 0.99}, "at most 0.9613"),
        ({"keys": 2}, "5.0 keys a query"),
        ({"sparsity": 1.5}, "between 0 and 1"),
        ({"keys": 129}, "expected 1 to 128"),
        ({"radius": -1}, "at least 0"),
    ],
)
def test_a_budget_that_cannot_be_met_is_refused(arguments: dict[str, float], words: str) -> None:
    with pytest.raises(PatternError, match=words):
        patterns.window_border(128, **arguments)  # type: ignore[arg-type]
