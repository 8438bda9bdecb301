from pathlib import Path

import numpy as np
import pytest

from sparsebert.files import read_json
from sparsebert.studies.importance_files import offset_profile, write_importance


def test_the_profile_is_the_mean_of_each_distance_off_the_border() -> None:
    places = np.arange(6)
    importance = np.abs(places[:, None] - places).astype(float)[None].repeat(2, 0)
    importance[:, 0] = importance[:, -1] = importance[:, :, 0] = importance[:, :, -1] = 100.0
    assert offset_profile(importance) == pytest.approx([0, 1, 2, 3])


def test_categories_are_means_of_each_head(tmp_path: Path) -> None:
    importance = np.full((2, 12, 12), 0.5)
    importance[1, np.arange(1, 11), np.arange(1, 11)] = 0.25
    write_importance(tmp_path, importance, "soft")
    found = read_json(tmp_path / "importance.json")
    assert found["categories"]["diagonal"] == [0.5, 0.25]
    assert found["categories"]["cls"] == [0.5, 0.5]
    assert np.load(tmp_path / "heat.npy").dtype == np.float32


def test_equal_importance_gives_equal_bytes(tmp_path: Path) -> None:
    importance = np.random.default_rng(0).random((2, 12, 12))
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        write_importance(tmp_path / name, importance, "soft")
    for name in ("importance.json", "heat.npy"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
