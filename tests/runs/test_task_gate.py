"""A pattern learned on a task's own loss."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from sparsebert import Pattern, gates, load_model
from sparsebert.errors import ConfigError, SparseBertError
from sparsebert.files import read_json
from sparsebert.gates import preset
from sparsebert.runs import FinetuneRun, TaskSearchRun


def small(**changes: Any) -> TaskSearchRun:
    sizes = {"length": 24, "batch_size": 8, "max_rows": 16, "max_dev_rows": 8, "num_steps": 3, "sparsity": 0.8}
    return TaskSearchRun.read({"task": "rte", "data": "builtin:tasks", "model": "scratch:tiny", **sizes, **changes})


def test_a_search_on_a_task_freezes_a_pattern_and_scores_the_model_under_it(tmp_path: Path) -> None:
    result = small().make(tmp_path)
    pattern = Pattern.load(tmp_path / "pattern.safetensors")
    assert abs(pattern.sparsity - 0.8) < 0.05
    assert pattern.anchor == "token"
    assert load_model(str(tmp_path / "model"), "sequence_classification").pattern == pattern
    assert gates.load(tmp_path / "gate.safetensors").freeze() == pattern
    found = read_json(tmp_path / "result.json")
    assert (found["task"], found["sparsity"]) == ("rte", pattern.sparsity)
    assert len(found["sparsity_of_heads"]) == 2
    for figure in ("pattern.png", "sparsity.png"):
        assert (tmp_path / figure).is_file()
    line = json.loads((tmp_path / "metrics.jsonl").read_text().splitlines()[0])
    assert line["loss"] == pytest.approx(line["task"] + line["penalty"])
    assert small().make(tmp_path).fields == result.fields


def test_what_every_head_is_assured_of_is_part_of_the_run(tmp_path: Path) -> None:
    small().make(tmp_path)
    with pytest.raises(ConfigError, match="assured"):
        small(assured=0.9).make(tmp_path)


def test_a_sparse_teacher_is_refused(tmp_path: Path) -> None:
    small().make(tmp_path / "sparse")
    with pytest.raises(ConfigError, match="is sparse; expected a dense model"):
        small(model=str(tmp_path / "sparse"), teacher=str(tmp_path / "sparse")).make(tmp_path / "found")


def test_a_dense_teacher_leads_a_gate_a_layer_as_it_leads_one_on_text(tmp_path: Path) -> None:
    sizes = {"length": 24, "batch_size": 8, "max_rows": 16, "max_dev_rows": 8}
    dense = FinetuneRun("rte", "builtin:tasks", "scratch:tiny", fit={"num_steps": 2}, **sizes)  # type: ignore[arg-type]
    dense.make(tmp_path / "dense")
    taught = small(model=str(tmp_path / "dense"), teacher=str(tmp_path / "dense"))
    taught.make(tmp_path / "found")
    gate = gates.load(tmp_path / "found" / "gate.safetensors")
    assert gate.settings == preset("distilled")
    assert (gate.layers, Pattern.load(tmp_path / "found" / "pattern.safetensors").layers) == (2, 2)
    shared = small(model=str(tmp_path / "dense"), teacher=str(tmp_path / "dense"), layers="shared", preset="paper")
    assert (shared.layers, shared.gate_preset) == ("shared", "paper")
    assert small().gate_preset == "default"
    other = small(task="stsb", model=str(tmp_path / "dense"))
    with pytest.raises(SparseBertError, match="gives 2 numbers, but STS-B asks for 1"):
        other.make(tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_micro_batches_share_one_sample_and_leave_the_gradient_as_it_is(tmp_path: Path) -> None:
    gradients = []
    for parts in (1, 2):
        objective = small().prepare(tmp_path / str(parts)).objective
        objective.micro_batches = parts
        torch.nn.Module.train(objective)
        for module in objective.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.0
        objective.model.config.attention_probs_dropout_prob = 0.0
        for micro in range(parts):
            (objective(0, micro).total / parts).backward()
        gradients.append(torch.cat([p.grad.flatten() for p in objective.parameters() if p.grad is not None]))
    torch.testing.assert_close(gradients[0], gradients[1], atol=1e-5, rtol=1e-3)


def test_two_levels_move_alpha_by_batches_of_its_own_and_the_weights_as_before(tmp_path: Path) -> None:
    """The first step's batch covers half the rows, so that alpha's own batch is another one."""
    gradients: list[dict[str, torch.Tensor]] = []
    for levels in (1, 2):
        objective = small(levels=levels, sparsity=None, penalty=1e-9).prepare(tmp_path / str(levels)).objective.eval()
        objective(0, 0).total.backward()
        gradients.append({name: p.grad for name, p in objective.named_parameters() if p.grad is not None})
    one, two = gradients
    assert one.keys() == two.keys()
    for name in one:
        if name.endswith("alpha"):
            assert not torch.allclose(one[name], two[name], rtol=0.1, atol=1e-9)
        else:
            torch.testing.assert_close(one[name], two[name], msg=name)


def test_a_search_of_two_levels_ends_with_a_pattern(tmp_path: Path) -> None:
    assert small(levels=2).make(tmp_path).fields["sparsity"] == pytest.approx(0.8, abs=0.05)


def test_a_sparsity_beyond_the_border_is_refused_before_anything_is_trained(tmp_path: Path) -> None:
    with pytest.raises(SparseBertError, match="cannot be reached"):
        small(sparsity=0.95).make(tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("penalty", "sparsity"), [(None, None), (0.1, 0.9)])
def test_a_target_and_a_penalty_exclude_each_other(penalty: float | None, sparsity: float | None) -> None:
    with pytest.raises(SparseBertError, match="a sparsity"):
        small(penalty=penalty, sparsity=sparsity)


def test_a_run_of_an_earlier_version_which_drew_a_sample_a_micro_batch_is_refused(tmp_path: Path) -> None:
    small().make(tmp_path)
    (tmp_path / "result.json").unlink()
    about = read_json(tmp_path / "run.json")
    del about["settings"]["a_sample"]
    (tmp_path / "run.json").write_text(json.dumps(about))
    with pytest.raises(SparseBertError, match="a_sample is None"):
        small().make(tmp_path)
