import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sparsebert import patterns
from sparsebert.theory.reach import reach


def from_picture(picture):
    rows = [[mark == "#" for mark in line] for line in picture.split()]
    return patterns.from_keep(torch.tensor([rows]))


def test_a_chain_takes_as_many_layers_as_it_has_links():
    found = reach(from_picture(".... #... .#.. ..#.") | from_picture(".#.. ..#. ...# ...."))
    assert found.layers == 3
    assert found.heard_after == (6, 10, 12)
    assert found.neighbours_linked


def test_one_way_links_leave_pairs_unconnected():
    found = reach(from_picture("... #.. .#."))
    assert found.layers is None
    assert found.unreachable == 3
    assert found.neighbours_linked


def test_blocks_are_never_connected():
    found = reach(from_picture(".#.. #... ...# ..#."))
    assert (found.layers, found.unreachable) == (None, 8)
    assert not found.neighbours_linked


def test_heads_count_together():
    down, up = [[False] * 3 for _ in range(3)], [[False] * 3 for _ in range(3)]
    down[1][0] = down[2][1] = up[0][1] = up[1][2] = True
    assert reach(patterns.from_keep(torch.tensor([down, up]))).layers == 2


def test_nobody_hears_anybody_in_an_empty_pattern():
    found = reach(patterns.from_keep(torch.zeros(1, 3, 3, dtype=torch.bool)))
    assert (found.layers, found.unreachable, found.heard_after, found.mean_layers) == (None, 6, (), 0.0)


@pytest.mark.parametrize(
    ("name", "layers"), [("full", 1), ("star", 2), ("strided", 2), ("fixed", 2), ("log_sparse", 5), ("big_bird", 2)]
)
def test_the_hand_made_patterns_connect_all_tokens_with_or_without_the_diagonal(name, layers):
    pattern = patterns.named(name, 128)
    assert reach(pattern).layers == reach(pattern.without_diagonal()).layers == layers


@given(st.integers(0, 2**25 - 1))
def test_breadth_first_search_agrees_with_matrix_powers(bits):
    keep = np.array([[bits >> (5 * i + j) & 1 for j in range(5)] for i in range(5)], dtype=bool)
    found = reach(patterns.from_keep(torch.from_numpy(keep[None])))
    heard, counts = np.eye(5, dtype=int), []
    for _ in range(5):
        heard = ((heard + keep.astype(int) @ heard) > 0).astype(int)
        counts.append(int(heard.sum()) - 5)
    expected = [count for count, before in zip(counts, [0, *counts], strict=False) if count > before]
    assert list(found.heard_after) == expected
    assert found.unreachable == 20 - counts[-1]


def test_layers_that_differ_are_followed_from_the_first_to_the_last():
    down, up = from_picture("... #.. .#."), from_picture(".#. ..# ...")
    found = reach(patterns.per_layer([down, up]))
    # After the first layer 1 has heard 0 and 2 has heard 1; after the second 0 has heard 1, and 1 has heard 2 too.
    assert (found.heard_after, found.layers, found.unreachable, found.own_layers) == ((2, 4), None, 2, 2)
    assert found.neighbours_linked
    assert found.mean_layers == 1.5
    third = reach(patterns.per_layer([down, up, down, up]))
    assert (third.heard_after, third.layers, third.unreachable) == ((2, 4, 5, 6), 4, 0)


@pytest.mark.parametrize("length", [7, 300])
def test_equal_layers_connect_what_one_layer_connects_at_that_depth(length):
    window = patterns.window(length, 2)
    one, four = reach(window), reach(patterns.per_layer([window] * 4))
    assert four.heard_after == one.heard_after[:4]
    assert four.own_layers == 4
