"""Fine-tuning through the one loop: every task, repeatable, resumable, and held to its settings."""

import json
import os
import shutil
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from sparsebert import load_model, patterns
from sparsebert.errors import ConfigError, TaskError
from sparsebert.files import read_json, sha256_of_file, write_json
from sparsebert.model.saving import save_model
from sparsebert.progress import Watcher
from sparsebert.runs import FinetuneRun
from sparsebert.tasks.config import FinetuneConfig
from sparsebert.tasks.objective import main_score
from sparsebert.tasks.table import TASKS, find_task
from sparsebert.text import load_tokenizer


def _run(task: str, data: Path, **changes: Any) -> FinetuneRun:
    given: dict[str, Any] = {"learning_rate": 5e-4, "max_rows": 48, "batch_size": 16, "num_epochs": 2}
    return FinetuneRun(task, str(data), "scratch:tiny", **(given | changes))


@pytest.mark.parametrize("task", TASKS)
def test_every_task_trains_under_a_pattern_and_scores(tiny_run: Callable[[str], Path], task: str) -> None:
    run = tiny_run(task)
    result = read_json(run / "result.json")
    assert {"task", "metric", "score", "metrics", "seed"} <= set(result)
    assert 0 <= result["score"] <= 100 or task in ("cola", "stsb")
    assert result["sparsity"] == patterns.star(384 if task.startswith("squad") else 128).sparsity
    assert (run / "pattern.safetensors").is_file()
    assert "clock" not in json.dumps(result)


def test_a_signal_in_the_builtin_rows_is_learned(tmp_path: Path, builtin_data: Path) -> None:
    result = _run("rte", builtin_data, max_rows=None, learning_rate=1e-3, num_epochs=4).make(tmp_path)
    assert result.fields["score"] > 90


def test_the_same_settings_give_the_same_bytes(tmp_path: Path, builtin_data: Path) -> None:
    for name in ("one", "other"):
        _run("mrpc", builtin_data, pattern="star").make(tmp_path / name)
    for file in ("result.json", "metrics.jsonl", "model/model.safetensors", "pattern.safetensors"):
        assert sha256_of_file(tmp_path / "one" / file) == sha256_of_file(tmp_path / "other" / file)


def test_another_seed_gives_another_model(tmp_path: Path, builtin_data: Path) -> None:
    for seed in (0, 1):
        _run("rte", builtin_data, seed=seed, num_epochs=1).make(tmp_path / str(seed))
    one, other = ((tmp_path / str(seed) / "metrics.jsonl").read_text() for seed in (0, 1))
    assert one != other


def test_micro_batches_give_the_same_gradient_as_the_whole_batch(tmp_path: Path, builtin_data: Path) -> None:
    # 48 rows in batches of 20: the last batch of the epoch is a small one.
    objective = _run("rte", builtin_data, batch_size=20).prepare(tmp_path).objective.eval()
    gradients = []
    for parts in (1, 3):
        objective.micro_batches = parts
        objective.zero_grad()
        for step in range(objective.steps_per_epoch):
            for micro in range(parts):
                (objective(step, micro).total / parts).backward()
        gradients.append(torch.cat([p.grad.flatten() for p in objective.parameters() if p.grad is not None]))
    torch.testing.assert_close(gradients[0], gradients[1], atol=1e-6, rtol=1e-4)


def test_a_part_without_rows_adds_nothing(tmp_path: Path, builtin_data: Path) -> None:
    objective = _run("rte", builtin_data, max_rows=3).prepare(tmp_path).objective.eval()
    objective.micro_batches = 8
    losses = objective(0, 7)
    losses.total.backward()
    assert losses.total.item() == 0.0
    assert losses.tokens == 0


def test_span_losses_do_not_depend_on_padding(tmp_path: Path, builtin_data: Path) -> None:
    from sparsebert.tasks.heads import item_losses, run_head

    objective = _run("squad1", builtin_data).prepare(tmp_path).objective.eval()
    items = objective.train_items
    by_length = np.argsort(items.lengths, kind="stable")
    pair = by_length[[0, -1]]
    losses = []
    for rows in (pair, pair[:1]):
        batch = items.batch(rows)
        scores = run_head(objective.model, "span", batch)
        losses.append(item_losses("span", scores, objective.labels[torch.from_numpy(rows)], batch)[0])
    torch.testing.assert_close(losses[0], losses[1], atol=1e-5, rtol=1e-5)


def test_a_changed_setting_is_refused_by_name(tmp_path: Path, builtin_data: Path) -> None:
    _run("rte", builtin_data, num_epochs=1).make(tmp_path)
    with pytest.raises(ConfigError, match="learning_rate"):
        _run("rte", builtin_data, num_epochs=1, learning_rate=1e-5).make(tmp_path)


def test_a_changed_file_is_noticed(tmp_path: Path) -> None:
    from sparsebert.tasks.builtin import write_builtin

    data = write_builtin(tmp_path / "data", tasks=["rte"])
    _run("rte", data, num_epochs=1).make(tmp_path / "run")
    path = data / "glue" / "RTE" / "train.tsv"
    path.write_bytes(path.read_bytes().replace(b"Anna", b"Nina"))
    with pytest.raises(ConfigError, match="data_sha256"):
        _run("rte", data, num_epochs=1).make(tmp_path / "run")


def test_changed_weights_are_noticed_unless_a_run_is_older_than_that(tmp_path: Path, builtin_data: Path) -> None:
    first = _run("rte", builtin_data, num_epochs=1)
    first.make(tmp_path / "first")
    tuned = replace(first, model=str(tmp_path / "first" / "model"))
    tuned.make(tmp_path / "tuned")
    replace(first, seed=1).make(tmp_path / "other")
    shutil.rmtree(tmp_path / "first")
    (tmp_path / "other").rename(tmp_path / "first")
    with pytest.raises(ConfigError, match="weights_sha256"):
        tuned.make(tmp_path / "tuned")
    about = tmp_path / "tuned" / "run.json"
    older = read_json(about)
    del older["settings"]["weights_sha256"]
    write_json(about, older)
    assert tuned.make(tmp_path / "tuned").was_finished


def test_a_teacher_of_another_shape_is_refused(tmp_path: Path, builtin_data: Path) -> None:
    run, model = _run("rte", builtin_data, num_epochs=1), str(tmp_path / "teacher" / "model")
    run.make(tmp_path / "teacher")
    words = load_tokenizer(model)
    smaller = load_model("scratch:tiny", vocab_size=words.get_vocab_size(), num_hidden_layers=1)
    save_model(smaller, tmp_path / "smaller", words)
    taught = replace(run, model=str(tmp_path / "smaller"), teacher=str(tmp_path / "teacher"))
    with pytest.raises(ConfigError, match=r"teacher .* has 2 layers, the model held against it 1"):
        taught.make(tmp_path / "taught")
    assert not (tmp_path / "taught").exists()


def test_settings_out_of_range_are_refused(tmp_path: Path, builtin_data: Path) -> None:
    for changes, words in (
        ({"batch_size": 0}, "batch_size"),
        ({"warmup": 2.0}, "warmup"),
        ({"num_epochs": -1}, "num_epochs"),
    ):
        with pytest.raises(ConfigError, match=words):
            _run("rte", builtin_data, **changes).make(tmp_path)


def test_unset_settings_are_those_of_the_appendix() -> None:
    found = {}
    for name in ("rte", "swag", "squad1", "squad2"):
        config = FinetuneConfig(name, "d", "m").resolved()
        found[name] = (config.batch_size, config.num_epochs, config.length, config.stride, config.warmup)
    assert found == {
        "rte": (32, 3, 128, 0, 0.1),
        "swag": (16, 3, 128, 0, 0.1),
        "squad1": (32, 3, 384, 128, 0.1),
        "squad2": (48, 2, 384, 128, 0.1),
    }


def test_a_fine_tuned_model_keeps_its_pattern_when_it_is_tuned_on(tmp_path: Path, builtin_data: Path) -> None:
    _run("rte", builtin_data, num_epochs=1, pattern="star").make(tmp_path / "first")
    run = FinetuneRun("qnli", str(builtin_data), str(tmp_path / "first"), num_epochs=1, max_rows=16)
    again = run.make(tmp_path / "second")
    assert again.fields["sparsity"] == patterns.star(128).sparsity


def test_rows_without_labels_cannot_be_trained_on(tmp_path: Path, builtin_data: Path) -> None:
    from dataclasses import replace

    from sparsebert.tasks.objective import TaskObjective

    objective = _run("rte", builtin_data).prepare(tmp_path).objective
    with pytest.raises(TaskError, match="without labels"):
        TaskObjective(
            objective.model,
            objective.task,
            replace(objective.train_items, labels=None),
            {},
            folder=objective.task_folder,
            batch_size=8,
            learning_rate=1e-4,
            weight_decay=0.0,
        )


def test_the_score_of_mnli_is_the_mean_of_its_sections() -> None:
    assert main_score(find_task("mnli"), {"accuracy_matched": 80.0, "accuracy_mismatched": 82.0}) == 81.0
    assert main_score(find_task("mrpc"), {"f1": 88.0, "accuracy": 80.0}) == 88.0


class _Deadly(Watcher):
    """Ends the process, with no chance to clean up, once a step is done."""

    def __init__(self, at: int) -> None:
        self.at = at

    def step(self, done: int, words: str, left: float) -> None:
        if done == self.at:
            os.kill(os.getpid(), signal.SIGKILL)


def _killed_at(step: int, run: FinetuneRun, out: Path) -> int:
    """Run in a process of its own that dies after a step; the signal that ended it."""
    child = os.fork()
    if child == 0:
        run.make(out, _Deadly(step))
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.long
def test_runs_killed_at_ten_different_steps_end_with_the_same_bits(tmp_path: Path, builtin_data: Path) -> None:
    run = _run("rte", builtin_data, batch_size=8, pattern="star", fit={"checkpoint_every": 3})
    run.make(tmp_path / "whole")
    for step in range(1, 11):
        out = tmp_path / f"killed-{step}"
        assert _killed_at(step, run, out) == -signal.SIGKILL
        assert not (out / "result.json").exists()
        run.make(out)
        for file in ("result.json", "metrics.jsonl", "model/model.safetensors"):
            assert sha256_of_file(tmp_path / "whole" / file) == sha256_of_file(out / file)


def test_a_head_that_reads_the_mean_is_saved_as_such_and_predicts_so(tmp_path: Path, builtin_data: Path) -> None:
    from sparsebert.tasks.files.reading import read_rows
    from sparsebert.tasks.prediction import Predictor

    task = find_task("stsb")
    for pooling in (None, "mean"):
        _run("stsb", builtin_data, pooling=pooling, pattern="star").make(tmp_path / str(pooling))
    plain, mean = (read_json(tmp_path / name / "result.json")["metrics"] for name in ("None", "mean"))
    assert plain != mean
    predictor = Predictor(tmp_path / "mean")
    assert predictor.model.config.head_pooling == "mean"
    assert predictor.metrics(read_rows(task, str(builtin_data), "dev")) == pytest.approx(mean)
    assert "pooling" not in read_json(tmp_path / "None" / "run.json")["settings"]
    with pytest.raises(ConfigError, match="pooling"):
        _run("stsb", builtin_data, pattern="star").make(tmp_path / "mean")


def test_a_model_that_reads_the_mean_goes_on_doing_so(tmp_path: Path, builtin_data: Path) -> None:
    _run("rte", builtin_data, num_epochs=1, pooling="mean").make(tmp_path / "first")
    run = FinetuneRun("qnli", str(builtin_data), str(tmp_path / "first"), num_epochs=1, max_rows=16)
    run.make(tmp_path / "second")
    assert read_json(tmp_path / "second" / "model" / "config.json")["head_pooling"] == "mean"


def test_pooling_is_refused_where_the_answer_is_a_place() -> None:
    with pytest.raises(ConfigError, match="reads every token by itself; leave pooling out"):
        FinetuneConfig("squad1", "d", "m", pooling="mean").resolved()
