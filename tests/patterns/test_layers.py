"""Patterns with layers of their own: the same algebra, layer by layer, and files that older versions refuse."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sparsebert import Pattern, attend, patterns
from sparsebert.errors import PatternError, SparseBertError
from sparsebert.files import open_sealed_tensors, seal_tensors
from sparsebert.patterns.figures import head_grid
from sparsebert.patterns.storage import from_bytes, to_bytes
from tests.patterns.test_pattern import any_pattern

SOMEWHERE = Path("pattern.safetensors")


@st.composite
def layered(draw: st.DrawFn, length: int | None = None, heads: int | None = None, layers: int | None = None) -> Pattern:
    length = draw(st.integers(1, 16)) if length is None else length
    heads = draw(st.integers(1, 3)) if heads is None else heads
    layers = draw(st.integers(2, 4)) if layers is None else layers
    return patterns.per_layer([draw(any_pattern(length, draw(st.sampled_from([1, heads])))) for _ in range(layers)])


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Pattern, Pattern]:
    length, heads, layers = draw(st.integers(1, 16)), draw(st.integers(1, 3)), draw(st.integers(2, 4))
    shared = draw(st.booleans())
    right = draw(any_pattern(length, heads)) if shared else draw(layered(length, heads, layers))
    return draw(layered(length, heads, layers)), right


def star_and_window() -> Pattern:
    return patterns.per_layer([patterns.star(4), patterns.window(4, radius=0)])


def test_each_layer_is_drawn_by_itself() -> None:
    pattern = star_and_window()
    assert (pattern.layers, pattern.heads, pattern.kept) == (2, 1, 14 + 4)
    assert pattern.picture() == "####\n###.\n####\n#.##"
    assert pattern.picture(layer=1) == "#...\n.#..\n..#.\n...#"
    assert pattern.sparsity == 1 - 18 / 32
    assert pattern.keys_per_query == 18 / 8
    assert repr(pattern) == (
        "Pattern(by layer star / window, length=4, layers=2, heads=1, sparsity=0.4375, keys_per_query=2.2)"
    )
    assert pattern._repr_html_().count("layer 1, head 0") == 1


def test_a_figure_has_a_row_a_layer() -> None:
    figure = head_grid(patterns.per_layer([patterns.star(8, heads=7)] * 3))
    assert [axes.get_title() for axes in figure.axes][7:9] == ["layer 1, head 0", "layer 1, head 1"]
    assert len(figure.axes) == 21
    assert figure.axes[7].get_subplotspec().rowspan.start == 1  # type: ignore[union-attr]


@given(layered())
def test_layers_are_what_they_were_put_together_from(pattern: Pattern) -> None:
    layers = [pattern.layer(number) for number in range(pattern.layers)]
    assert [one.layers for one in layers] == [1] * pattern.layers
    assert patterns.per_layer(layers) == pattern
    assert torch.equal(torch.stack([one.keep() for one in layers]), pattern.keep())
    assert patterns.from_keep(pattern.keep()) == pattern
    assert pattern.sparsity == pytest.approx(1 - pattern.keep().float().mean().item())


@given(layered())
def test_layers_that_keep_the_same_are_one_object(pattern: Pattern) -> None:
    twice = patterns.per_layer([pattern.layer(0), pattern.layer(1), pattern.layer(0)])
    assert twice.layer(2) is twice.layer(0)
    assert twice.layer(0) is twice.layer(0)
    assert pattern.layer(0).layer(17) is pattern.layer(0)


@given(pairs())
def test_operations_are_those_of_the_layers(pair: tuple[Pattern, Pattern]) -> None:
    left, right = pair
    each = [(left.layer(number), right.layer(number)) for number in range(left.layers)]
    assert left | right == right | left == patterns.per_layer([a | b for a, b in each])
    assert left & right == patterns.per_layer([a & b for a, b in each])
    assert left.without_diagonal() == patterns.per_layer([a.without_diagonal() for a, _ in each])
    assert left.anchored("token") == patterns.per_layer([a.anchored("token") for a, _ in each])
    assert left.crop(1) == patterns.per_layer([a.crop(1) for a, _ in each])


@given(pairs(), st.integers(1, 20))
def test_another_length_is_rebuilt_layer_by_layer(pair: tuple[Pattern, Pattern], length: int) -> None:
    left, right = pair
    assert left.at(length) == patterns.per_layer([left.layer(number).at(length) for number in range(left.layers)])
    assert (left | right).without_diagonal().at(length) == (left.at(length) | right.at(length)).without_diagonal()


def test_a_layer_of_repeated_heads_keeps_as_many_at_another_length() -> None:
    pattern = patterns.per_layer([patterns.star(8), patterns.big_bird(8, heads=3)])
    assert pattern.layer(0).at(16) == patterns.star(16, heads=3)
    assert pattern.layer(0).with_heads(3) is pattern.layer(0)
    assert patterns.star(8).with_heads(3).at(16) == patterns.star(16, heads=3)


def test_random_drop_draws_every_layer_apart_and_the_first_as_ever() -> None:
    dropped = patterns.per_layer([patterns.full(16, heads=2)] * 2).random_drop(40, seed=3)
    assert dropped.layer(0) == patterns.full(16, heads=2).random_drop(40, seed=3)
    assert len({entries.tobytes() for _, _, entries in dropped.each_head()}) == 4


def test_one_pattern_for_all_layers_is_not_that_pattern_for_each() -> None:
    star = patterns.star(8)
    assert patterns.per_layer([star]) is star
    assert patterns.per_layer([star, star]) != star
    assert patterns.per_layer([star, star]) != star.with_heads(2)
    assert star.layers == 1


def test_offsets_may_be_given_layer_by_layer() -> None:
    pattern = patterns.from_offsets(3, [[[0]], [[1], [-1]]])
    assert [pattern.picture(1, layer=layer) for layer in (0, 1)] == ["#..\n.#.\n..#", "...\n#..\n.#."]


def test_a_pattern_of_one_layer_keeps_the_digest_it_always_had() -> None:
    assert patterns.star(8, heads=2).digest == "6dc9eff1c718bb4e1e583a85bd7d7bf1405ffbbf64c283fa7ecddf9ec7b9ebb0"
    assert (
        patterns.from_offsets(6, [[1]], border=True, anchor="token").digest
        == "cb71c35dd3df3ed2d87c69b6a2d0f83ab450f16b6c549087abeb551eaa59ce80"
    )


@given(layered(), st.sampled_from(["position", "token"]))
def test_a_file_brings_every_layer_back(pattern: Pattern, anchor: patterns.Anchor) -> None:
    pattern = pattern.anchored(anchor)
    data = to_bytes(pattern)
    loaded = from_bytes(data, SOMEWHERE, Pattern)
    assert loaded == pattern
    assert (loaded.rule, loaded.layers) == (pattern.rule, pattern.layers)
    assert to_bytes(loaded) == data


def test_only_files_with_layers_or_a_ranking_have_the_later_format() -> None:
    def about(pattern: Pattern) -> dict[str, object]:
        return open_sealed_tensors(to_bytes(pattern), SOMEWHERE)[1]

    assert about(patterns.star(4))["format"] == 1
    assert "layers" not in about(patterns.star(4))
    assert about(star_and_window())["format"] == 2


@pytest.mark.parametrize(
    "changes",
    [
        {"layers": 3},
        {"layers": 0},
        {"layers": "two"},
        {"layers": 1, "heads": 1},
        {"format": 1},
        {"rule": {"builder": "star", "heads": 1, "arguments": {}}},
        {"rule": {"operation": "layers", "of": []}},
        {"rule": {"operation": "layers", "of": "ab"}},
    ],
)
def test_files_whose_layers_do_not_add_up_are_refused(changes: dict[str, object]) -> None:
    tensors, about = open_sealed_tensors(to_bytes(star_and_window()), SOMEWHERE)
    with pytest.raises(SparseBertError):
        from_bytes(seal_tensors(tensors, {**about, **changes}), SOMEWHERE, Pattern)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda: patterns.per_layer([]), "no pattern"),
        (lambda: patterns.per_layer([patterns.star(4), patterns.star(5)]), "layer 1 has length 5"),
        (lambda: patterns.per_layer([patterns.star(4, 2), patterns.star(4, 3)]), "2 heads but 3"),
        (lambda: patterns.per_layer([star_and_window()] * 2), "one layer and this one has 2"),
        (lambda: star_and_window() | patterns.per_layer([patterns.star(4)] * 3), "2 layers with one of 3"),
        (lambda: star_and_window().layer(2), "no layer 2"),
        (lambda: star_and_window().picture(layer=2), "no layer 2"),
        (lambda: attend(*torch.zeros(3, 1, 1, 4, 2), pattern=star_and_window()), "hand over pattern.layer"),
    ],
)
def test_misuse_is_refused_with_a_sentence(change: object, words: str) -> None:
    with pytest.raises(PatternError, match=words):
        change()  # type: ignore[operator]


def test_the_rows_of_layers_follow_each_other() -> None:
    pattern = star_and_window()
    assert pattern.row_starts.shape == (2, 5)
    assert np.array_equal(pattern.layer(1).keys, [0, 1, 2, 3])
