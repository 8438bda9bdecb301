"""What is planted stays visible when P is made small."""

import numpy as np
import pytest

from sparsebert.importance.averages import normalised, offset_profile, sketch
from tests.importance.planted import planted


def test_rows_are_divided_by_their_mean() -> None:
    values = np.array([[[1.0, 3.0], [10.0, 30.0]]])
    assert normalised(values).tolist() == [[0.5, 1.5], [0.5, 1.5]]


def test_a_row_of_zeros_stays_zero() -> None:
    assert normalised(np.zeros((2, 3, 3))).tolist() == np.zeros((3, 3)).tolist()


def test_the_sketch_keeps_distances_and_the_border_at_sixteen_positions() -> None:
    places = np.arange(40)
    heat = np.abs(places[:, None] - places).astype(float)
    heat[0, :] = heat[:, 0] = 100.0
    small = sketch(heat)
    assert small.shape == (16, 16)
    assert [small[5, 5], small[5, 6], small[5, 7]] == [0.0, 1.0, 2.0]
    assert small[0, 5] == small[5, 0] == 100.0


def test_the_sketch_of_a_normalised_p_shows_what_was_planted() -> None:
    small = sketch(normalised(planted()))
    assert (np.diagonal(small[1:-1, 1:-1]) < 0.6).all()
    assert (np.diagonal(small[1:-1, 1:-1], 1) > 0.9).all()
    assert (small[1:-1, 0] > 1.5).all()


def test_the_profile_is_the_mean_of_each_distance_off_the_border() -> None:
    places = np.arange(6)
    importance = np.abs(places[:, None] - places).astype(float)[None].repeat(2, 0)
    importance[:, 0] = importance[:, -1] = importance[:, :, 0] = importance[:, :, -1] = 100.0
    assert offset_profile(importance) == pytest.approx([0, 1, 2, 3])
