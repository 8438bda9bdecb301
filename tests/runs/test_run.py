"""Settings by name, for every kind of run."""

from pathlib import Path
from typing import Any

import pytest

from sparsebert.errors import ConfigError
from sparsebert.files import read_json, write_json
from sparsebert.runs import FinetuneRun, ImportanceRun, PretrainRun, RunSettings, SearchRun, TaskSearchRun
from sparsebert.settings import declared

ON_TEXT: dict[str, Any] = {"model": "scratch:tiny", "corpus": Path("corpus"), "steps": 20}
ON_A_TASK: dict[str, Any] = {"task": "rte", "data": "builtin:tasks", "model": "scratch:tiny"}
KINDS: dict[type[RunSettings], dict[str, Any]] = {
    PretrainRun: ON_TEXT,
    ImportanceRun: ON_TEXT,
    SearchRun: {**ON_TEXT, "sparsity": 0.8},
    FinetuneRun: ON_A_TASK,
    TaskSearchRun: {**ON_A_TASK, "sparsity": 0.8},
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_setting_of_the_loop_goes_to_the_loop_and_an_unknown_one_is_refused(kind: type[RunSettings]) -> None:
    assert kind.read({**KINDS[kind], "checkpoint_every": 7}).fit == {"checkpoint_every": 7}
    with pytest.raises(ConfigError, match="did you mean checkpoint_every"):
        kind.read({**KINDS[kind], "checkpoint_evry": 7})


@pytest.mark.parametrize("kind", [ImportanceRun, SearchRun, TaskSearchRun])
def test_a_setting_of_the_gate_goes_to_the_gate(kind: type[RunSettings]) -> None:
    assert kind.read({**KINDS[kind], "rate": 0.1}).gate == {"rate": 0.1}  # type: ignore[attr-defined]


def test_a_setting_is_declared_once_for_searches_on_text_and_on_tasks() -> None:
    for name in ("sparsity", "penalty", "levels", "diagonal"):
        assert declared(SearchRun)[name] == declared(TaskSearchRun)[name]
    for name in ("length", "batch_size", "dropout"):
        assert declared(SearchRun)[name] == declared(PretrainRun)[name] == declared(ImportanceRun)[name]


def test_a_run_json_of_an_earlier_version_still_fits(docs_corpus: Path, tmp_path: Path) -> None:
    """What earlier versions recorded for an importance run and a search, by name."""
    small: dict[str, Any] = {"length": 24, "batch_size": 4, "num_held_out": 1}
    of_gate = {"kind": "soft", "model": "scratch:tiny", "steps": 2, **small, "learning_rate": None}
    of_gate |= {"weight_decay": 0.01, "dropout": None, "penalty": 0.0, "sparsity": None, "preset": "default"}
    of_gate |= {"levels": 1, "diagonal": "learned", "anchor": "position", "head_start": 0.0, "gate": {}}
    for cls, changes in ((ImportanceRun, {}), (SearchRun, {"kind": "structured", "sparsity": 0.7})):
        out = tmp_path / cls.__name__
        run = cls(**{"model": "scratch:tiny", "corpus": docs_corpus, "steps": 2, **small, **changes})
        run.make(out)
        about = read_json(out / "run.json")
        hashes = {name: about["settings"][name] for name in ("corpus_sha256", "weights_sha256")}
        command = {"command": "importance" if cls is ImportanceRun else "search"}
        write_json(out / "run.json", {**about, "settings": {**of_gate, **changes, **hashes, **command}})
        (out / "result.json").unlink()
        assert run.make(out).resumed_from == 2


def test_a_pattern_of_a_builder_takes_its_arguments_by_name() -> None:
    run = PretrainRun.read({**ON_TEXT, "pattern": "window", "pattern.radius": 2, "length": 16})
    assert run.found_pattern(heads=1).keep().sum() == 16 * 5 - 6  # type: ignore[union-attr]
    with pytest.raises(ConfigError, match="names no builder"):
        PretrainRun.read({**ON_TEXT, "pattern.radius": 2})
