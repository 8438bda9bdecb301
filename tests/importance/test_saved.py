"""Importance from whichever files a run left."""

import json
from pathlib import Path

import numpy as np
import pytest

from sparsebert.errors import FileError
from sparsebert.files import read_json, seal_tensors, write_atomic
from sparsebert.importance.categories import NAMES
from sparsebert.importance.saved import (
    ATTENTION,
    find_importance,
    load_importance,
    read_summary,
    save_maps,
    write_summary,
)


def write_values(folder: Path, values: np.ndarray) -> Path:
    folder.mkdir(exist_ok=True)
    save_maps(folder, values)
    write_summary(folder, "attention")
    return folder


def test_a_summary_has_the_mean_of_each_category_in_each_head_under_its_one_name(tmp_path: Path) -> None:
    importance = np.full((2, 12, 12), 0.5)
    importance[1, np.arange(1, 11), np.arange(1, 11)] = 0.25
    found = read_json(write_values(tmp_path, importance) / "importance.json")
    assert list(found["categories"]) == sorted(NAMES)
    assert found["categories"]["diagonal"] == [0.5, 0.25]
    assert found["categories"]["[CLS]"] == [0.5, 0.5]
    assert np.load(tmp_path / "heat.npy").dtype == np.float32


def test_equal_importance_gives_equal_bytes(tmp_path: Path) -> None:
    importance = np.random.default_rng(0).random((2, 12, 12))
    a, b = (write_values(tmp_path / name, importance) for name in "ab")
    for name in ("importance.json", "heat.npy", ATTENTION):
        assert (a / name).read_bytes() == (b / name).read_bytes()


def test_a_summary_reads_as_it_was_written_with_the_values_and_without_them(tmp_path: Path) -> None:
    write_values(tmp_path, np.random.default_rng(0).random((2, 12, 12)))
    whole = read_summary(tmp_path)
    (tmp_path / "importance.json").unlink()
    from_values = read_summary(tmp_path)
    assert whole is not None
    assert from_values is not None
    assert (whole.method, whole.categories, whole.profile) == ("attention", from_values.categories, from_values.profile)
    write_summary(tmp_path, "attention")
    (tmp_path / ATTENTION).unlink()
    alone = read_summary(tmp_path)
    assert alone is not None
    assert (alone.categories, alone.profile) == (whole.categories, whole.profile)
    assert alone.heat is not None
    np.testing.assert_allclose(alone.heat, whole.heat, rtol=1e-6)


def test_a_summary_in_the_earlier_spelling_still_reads(tmp_path: Path) -> None:
    earlier = {name: [0.4, 0.5] for name in ("diagonal", "1", "2", "3-5", "cls", "sep", "other")}
    about = {"categories": {**earlier, "3-5": [0.6, 0.7]}, "offset_profile": [0.4, 0.6], "method": "soft"}
    (tmp_path / "importance.json").write_text(json.dumps(about))
    found = read_summary(tmp_path)
    assert found is not None
    assert set(found.categories) == set(NAMES)
    assert found.categories["±3..5"] == (0.6, 0.7)
    assert (found.method, found.profile, found.heat) == ("soft", (0.4, 0.6), None)


def test_a_run_that_left_nothing_has_no_importance(tmp_path: Path) -> None:
    assert read_summary(tmp_path) is None
    assert find_importance(tmp_path) is None
    with pytest.raises(FileError, match="expected a finished importance run"):
        load_importance(tmp_path)


def test_a_heat_map_that_would_run_code_is_refused(tmp_path: Path) -> None:
    (tmp_path / "importance.json").write_text(json.dumps({"categories": {}, "method": "soft"}))
    np.save(tmp_path / "heat.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(FileError, match="not an array of numbers"):
        read_summary(tmp_path)


@pytest.mark.parametrize(
    "text",
    ["[]", '{"categories": 3}', '{"categories": {"diagonal": [0.5, "low"]}}', '{"categories": {"diagonal": 0.5}}'],
)
def test_importance_json_of_another_shape_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "importance.json").write_text(text)
    with pytest.raises(FileError, match="run the importance analysis again"):
        read_summary(tmp_path)


def test_maps_of_another_shape_are_refused(tmp_path: Path) -> None:
    write_atomic(tmp_path / ATTENTION, seal_tensors({"maps": np.ones((3, 3))}, {"kind": "attention maps"}))
    with pytest.raises(FileError, match="holds no attention maps"):
        load_importance(tmp_path)
