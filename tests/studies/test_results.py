"""Reading study folders: what is there, what is not finished, what is refused."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from sparsebert.errors import FileError
from sparsebert.studies.results import load_study
from sparsebert.studies.runs import Condition
from tests.report.synthetic import World, make_study


def test_runs_come_with_their_results() -> None:
    study = make_study(World(seeds=1))
    tuned = next(study.finished("finetune", family="dense", task="rte"))
    assert tuned.score == pytest.approx(69.0, abs=3)
    assert tuned.sparsity == 0.0
    assert next(study.finished("adapt", family="dense")).loss == pytest.approx(1.9, abs=0.1)
    assert study.is_evidence


def write(folder: Path, **changes: object) -> Path:
    run = {"id": "a", "stage": "adapt", "label": "a", "condition": {"family": "dense"}, "folder": "runs/a"}
    about = {"name": "x", "scale": "laptop", "version": 1, "runs": [run | changes.pop("run", {})], **changes}  # type: ignore[operator]
    (folder / "study.json").write_text(json.dumps(about))
    return folder


def test_a_run_without_result_json_is_not_finished(tmp_path: Path) -> None:
    study = load_study(write(tmp_path))
    assert study.runs[0].result is None
    assert list(study.finished()) == []


@pytest.mark.parametrize("place", ["/etc", "../elsewhere", "runs/../../x"])
def test_a_run_outside_the_study_is_refused(tmp_path: Path, place: str) -> None:
    with pytest.raises(FileError, match="outside the study"):
        load_study(write(tmp_path, run={"folder": place}))


def test_a_folder_without_study_json_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"holds no study\.json"):
        load_study(tmp_path)


@pytest.mark.parametrize("changes", [{"version": 2}, {"runs": 3}, {"runs": [{"id": 1}]}, {"run": {"stage": "score"}}])
def test_a_study_that_is_none_is_refused(tmp_path: Path, changes: dict[str, object]) -> None:
    with pytest.raises(FileError):
        load_study(write(tmp_path, **changes))


def test_a_result_that_is_not_an_object_is_refused(tmp_path: Path) -> None:
    (tmp_path / "runs" / "a").mkdir(parents=True)
    (tmp_path / "runs" / "a" / "result.json").write_text("[1]")
    with pytest.raises(FileError, match="not a JSON object"):
        load_study(write(tmp_path))


def test_numbers_that_are_none_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "runs" / "a").mkdir(parents=True)
    result = {"metrics": {"mlm_loss": "low"}, "sparsity": True, "score": "good"}
    (tmp_path / "runs" / "a" / "result.json").write_text(json.dumps(result))
    run = load_study(write(tmp_path)).runs[0]
    assert (run.loss, run.sparsity, run.score) == (None, None, None)


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ({}, "names no family"),
        (["dense"], "names no family"),
        ({"family": ["pruned"]}, "family is"),
        ({"family": "pruned", "sparsity_target": "most"}, "sparsity_target is 'most'; expected"),
        ({"family": "pruned", "seed": True}, "seed is True; expected"),
        ({"family": "pruned", "taste": "sweet"}, "unknown field 'taste'"),
    ],
)
def test_a_condition_of_another_shape_is_refused(tmp_path: Path, condition: object, words: str) -> None:
    with pytest.raises(FileError, match=words):
        load_study(write(tmp_path, run={"condition": condition}))


def test_a_condition_reads_as_the_study_wrote_it(tmp_path: Path) -> None:
    condition = Condition("learned", kind="structured", penalty=1e-4, diagonal=False, task="rte", seed=3)
    assert load_study(write(tmp_path, run={"condition": asdict(condition)})).runs[0].condition == condition
    earlier = {"family": "learned", "kind": "structured", "penalty": 1}  # before other fields were added
    assert load_study(write(tmp_path, run={"condition": earlier})).runs[0].condition == Condition(
        "learned", kind="structured", penalty=1.0
    )
