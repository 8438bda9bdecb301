from pathlib import Path

import pytest

from sparsebert.errors import ConfigError, ModelError
from sparsebert.studies.scales import find_scale
from sparsebert.studies.sources import find_sources
from sparsebert.tasks.builtin import write_builtin


def test_built_in_text_and_tasks_are_made_once_and_are_the_same_everywhere(tmp_path: Path) -> None:
    made = [find_sources(find_scale("smoke"), ["rte"], tmp_path / name, None, None) for name in ("a", "b", "a")]
    assert made[0].as_json() == made[1].as_json() == made[2].as_json()
    assert made[0].heads == 4
    assert made[0].vocab_size == 800


def test_other_task_files_have_another_hash(tmp_path: Path) -> None:
    scale = find_scale("paper")
    hashes = {
        seed: find_sources(
            scale, ["rte"], tmp_path, None, write_builtin(tmp_path / str(seed), seed=seed, tasks=["rte"])
        )
        for seed in (0, 1)
    }
    assert hashes[0].task_sha256 != hashes[1].task_sha256


def test_what_is_not_at_hand_can_be_counted_but_not_run(tmp_path: Path) -> None:
    sources = find_sources(find_scale("paper"), ["rte", "mnli"], tmp_path, None, None)
    assert sources.task_sha256 == {"mnli": None, "rte": None}
    assert sources.vocab_size == 30_000
    with pytest.raises(ConfigError, match="--corpus and --data missing"):
        sources.require()


def test_an_unknown_model_from_scratch_is_refused(tmp_path: Path) -> None:
    scale = find_scale("paper").changed({"model": "scratch:huge"})
    with pytest.raises(ModelError, match="no model 'scratch:huge'"):
        find_sources(scale, [], tmp_path, None, None)
