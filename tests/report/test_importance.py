"""Importance from whichever files a run left."""

import json
from pathlib import Path

import numpy as np
import pytest

from sparsebert.errors import FileError
from sparsebert.report.importance import normalised, profile_of, read_importance
from sparsebert.report.study import Run


def run_at(folder: Path) -> Run:
    return Run("a", "importance", "a", {"seed": 0}, folder, result={})


def test_importance_json_is_enough(tmp_path: Path) -> None:
    about = {"categories": {"diagonal": [0.4, 0.5], "1": [0.6, 0.7]}, "offset_profile": [0.4, 0.6], "method": "soft"}
    (tmp_path / "importance.json").write_text(json.dumps(about))
    np.save(tmp_path / "heat.npy", np.ones((4, 4), dtype=np.float32))
    found = read_importance(run_at(tmp_path))
    assert found is not None
    assert found.categories == {"diagonal": (0.4, 0.5), "1": (0.6, 0.7)}
    assert found.profile == (0.4, 0.6)
    assert found.heat is not None
    assert found.heat.shape == (4, 4)


def test_a_run_that_left_nothing_is_left_out(tmp_path: Path) -> None:
    assert read_importance(run_at(tmp_path)) is None


def test_a_heat_map_that_would_run_code_is_refused(tmp_path: Path) -> None:
    (tmp_path / "importance.json").write_text(json.dumps({"categories": {}, "method": "soft"}))
    np.save(tmp_path / "heat.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(FileError, match="not an array of numbers"):
        read_importance(run_at(tmp_path))


@pytest.mark.parametrize("text", ["[]", '{"categories": 3}'])
def test_importance_json_of_another_shape_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "importance.json").write_text(text)
    with pytest.raises(FileError):
        read_importance(run_at(tmp_path))


def test_the_profile_leaves_the_border_out() -> None:
    places = np.arange(8)
    values = np.abs(places[:, None] - places)[None].astype(float)
    values[:, 0, :] = values[:, :, -1] = 99.0
    assert profile_of(values).tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


def test_rows_are_divided_by_their_mean() -> None:
    values = np.array([[[1.0, 3.0], [10.0, 30.0]]])
    assert normalised(values).tolist() == [[0.5, 1.5], [0.5, 1.5]]
