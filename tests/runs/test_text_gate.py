"""Importance and search from settings to a run folder: what they write, that they resume, what they refuse."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from sparsebert import Pattern, gates, load_model
from sparsebert.errors import ConfigError, RunInterruptedError, SparseBertError
from sparsebert.importance.saved import load_importance
from sparsebert.progress import Watcher
from sparsebert.runs import ImportanceRun, SearchRun


def small(corpus: Path, kind: str, **changes: Any) -> ImportanceRun | SearchRun:
    given = {"kind": kind, "model": "scratch:tiny", "corpus": corpus, "steps": 3, "length": 24, "batch_size": 4}
    cls = ImportanceRun if kind in ("soft", "attention") else SearchRun
    return cls.read({**given, "num_held_out": 1, **changes})


def test_an_importance_run_leaves_p_a_table_a_sentence_and_a_figure(docs_corpus: Path, tmp_path: Path) -> None:
    result = small(docs_corpus, "soft").make(tmp_path)
    values = load_importance(tmp_path)
    assert values.shape == (2, 24, 24)
    assert np.array_equal(values, values.transpose(0, 2, 1))
    assert not np.allclose(values, 0.5, atol=1e-3)
    assert result.fields["method"] == "gate"
    assert {row["name"] for row in result.fields["table"]} >= {"diagonal", "±1", "[CLS]"}
    assert "diagonal" in result.fields["verdict"]
    assert (tmp_path / "importance.png").is_file()
    assert load_model(str(tmp_path / "model")).pattern is None


def test_with_a_head_start_the_gate_learns_in_the_last_steps_only(docs_corpus: Path, tmp_path: Path) -> None:
    """AdamW's first step is as long as its rate: one step of the gate moves it that far, two may move it further."""
    moved = {}
    for share in (0.0, 0.5):
        run = small(docs_corpus, "soft", steps=2, head_start=share, rate=0.03, warmup_steps=0)
        run.make(tmp_path / str(share))
        moved[share] = float(gates.load(tmp_path / str(share) / "gate.safetensors").logits().detach().abs().max())
    assert moved[0.5] == pytest.approx(0.03, rel=1e-3)
    assert moved[0.0] == pytest.approx(0.06, rel=1e-1)


def test_attention_maps_are_distributions_over_keys(docs_corpus: Path, tmp_path: Path) -> None:
    small(docs_corpus, "attention").make(tmp_path)
    values = load_importance(tmp_path)
    full_rows = values.sum(-1)
    assert values.shape == (2, 24, 24)
    assert full_rows.max() <= 1 + 1e-6 or full_rows.min() > 0.9
    assert (values >= 0).all()


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("structured", {"sparsity": 0.7}),
        ("structured", {"sparsity": 0.7, "levels": 2, "diagonal": "drop"}),
        ("structured", {"penalty": 0.01, "preset": "paper"}),
        ("structured", {"sparsity": 0.9, "length": 300, "initial_density": 0.2}),
        ("unstructured", {"sparsity": 0.8}),
        ("unstructured", {"penalty": 0.01, "preset": "official"}),
    ],
)
def test_a_search_leaves_a_gate_and_a_model_under_the_frozen_pattern(
    docs_corpus: Path, tmp_path: Path, kind: str, changes: dict[str, Any]
) -> None:
    result = small(docs_corpus, kind, **changes).make(tmp_path)
    pattern = Pattern.load(tmp_path / "pattern.safetensors")
    gate = gates.load(tmp_path / "gate.safetensors")
    assert load_model(str(tmp_path / "model")).pattern == pattern
    assert result.fields["sparsity"] == pattern.sparsity
    if "sparsity" in changes:
        assert pattern == gate.freeze(diagonal=changes.get("diagonal", "learned"))
        assert pattern.sparsity == pytest.approx(changes["sparsity"], abs=0.05)
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [1, 2, 3]
    assert all(0 < line["sparsity"] < 1 for line in lines)
    for figure in ("pattern.png", "sparsity.png"):
        assert (tmp_path / figure).is_file()


def test_heads_that_are_assured_of_an_even_share_end_equally_sparse(docs_corpus: Path, tmp_path: Path) -> None:
    run = small(docs_corpus, "unstructured", sparsity=0.8, assured=1.0, rate=1.0)
    shares = run.make(tmp_path).fields["sparsity_of_heads"]
    assert shares == pytest.approx([0.8, 0.8], abs=0.005)
    gate = gates.load(tmp_path / "gate.safetensors")
    with torch.no_grad():
        next(gate.parameters())[0] += 1.0  # the first head is worth more
    kept = {assured: gate.freeze(0.8, assured=assured) for assured in (0.0, 1.0)}
    assert abs(len(kept[1.0].entries(0)) - len(kept[1.0].entries(1))) <= 0.01 * 24**2
    assert len(kept[0.0].entries(0)) - len(kept[0.0].entries(1)) > 0.1 * 24**2


class _StopsAfter(Watcher):
    """A watcher that breaks off a run, as a kill would."""

    def __init__(self, step: int) -> None:
        self.at = step

    def step(self, done: int, words: str, left: float) -> None:
        if done == self.at:
            raise KeyboardInterrupt


@pytest.mark.parametrize(("kind", "changes"), [("structured", {"sparsity": 0.7}), ("soft", {"head_start": 0.6})])
def test_a_run_that_was_broken_off_ends_with_the_bits_of_one_that_was_not(
    docs_corpus: Path, tmp_path: Path, kind: str, changes: dict[str, Any]
) -> None:
    run = small(docs_corpus, kind, steps=5, checkpoint_every=2, **changes)
    run.make(tmp_path / "whole")
    with pytest.raises((KeyboardInterrupt, RunInterruptedError)):
        run.make(tmp_path / "broken", _StopsAfter(4))
    assert run.make(tmp_path / "broken").resumed_from in (2, 4)
    names = ["gate.safetensors", "metrics.jsonl", "result.json", "model/model.safetensors"]
    for name in [*names, "pattern.safetensors"] if kind == "structured" else names:
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "broken" / name).read_bytes(), name


def test_a_pattern_that_is_a_draw_is_the_same_draw_after_a_kill_before_the_end(
    docs_corpus: Path, tmp_path: Path
) -> None:
    run = small(docs_corpus, "unstructured", penalty=0.01, preset="official")
    run.make(tmp_path)
    before = (tmp_path / "pattern.safetensors").read_bytes()
    (tmp_path / "result.json").unlink()
    assert run.make(tmp_path).resumed_from == 3
    assert (tmp_path / "pattern.safetensors").read_bytes() == before


def test_micro_batches_share_one_sample_and_leave_the_gradient_as_it_is(docs_corpus: Path, tmp_path: Path) -> None:
    alphas = []
    for parts in (1, 2):
        run = small(docs_corpus, "structured", sparsity=0.7, steps=2, dropout=0.0, micro_batches=parts)
        run.make(tmp_path / str(parts))
        alphas.append(gates.load(tmp_path / str(parts) / "gate.safetensors").logits().detach())
    torch.testing.assert_close(alphas[0], alphas[1], atol=2e-3, rtol=0)


def test_two_levels_move_alpha_by_batches_of_its_own(docs_corpus: Path, tmp_path: Path) -> None:
    """Without a penalty in the way: alpha differs between one level and two, the first weights' step does not."""
    alphas = []
    for levels in (1, 2):
        run = small(docs_corpus, "structured", penalty=1e-9, steps=1, levels=levels, dropout=0.0)
        run.make(tmp_path / str(levels))
        alphas.append(gates.load(tmp_path / str(levels) / "gate.safetensors").logits().detach())
    assert not torch.equal(alphas[0], alphas[1])
    models = [load_model(str(tmp_path / str(levels) / "model"), "masked_lm") for levels in (1, 2)]
    for (name, one), (_, two) in zip(models[0].named_parameters(), models[1].named_parameters(), strict=True):
        torch.testing.assert_close(one, two, atol=1e-6, rtol=0, msg=name)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"sparsity": 0.9, "penalty": 0.1},
        {"sparsity": 0.9, "levels": 3},
        {"sparsity": 0.9, "diagonal": "maybe"},
        {"sparsity": 0.9, "preset": "best"},
        {"sparsity": 0.999},
        {"sparsity": 0.9, "kind": "banded"},
        {"kind": "soft", "head_start": 1.0},
        {"kind": "soft", "sparsity": 0.9},
        {"kind": "soft", "border": False},
        {"kind": "attention", "rate": 0.1},
        {"sparsity": 0.9, "num_held_out": 0},
        {"sparsity": 0.9, "rate": -1.0},
        {"sparsity": 0.9, "stiffness": -1.0},
        {"sparsity": 0.9, "pooled": "maybe"},
        {"sparsity": 0.9, "head_start": 0.5},
    ],
)
def test_settings_that_cannot_be_are_refused(docs_corpus: Path, tmp_path: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(SparseBertError):
        small(docs_corpus, **{"kind": "structured", "steps": 1, **changes}).make(tmp_path)


def test_an_unknown_setting_is_named() -> None:
    with pytest.raises(ConfigError, match="no setting 'tau'"):
        ImportanceRun.read({"model": "minilm", "corpus": Path("x"), "steps": 1, "tau": 1})


def test_a_model_that_has_a_pattern_is_looked_at_everywhere_and_says_so(
    docs_corpus: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first = small(docs_corpus, "structured", sparsity=0.7)
    first.make(tmp_path / "first")
    own = Pattern.load(tmp_path / "first" / "pattern.safetensors")
    corpus = {"model": str(tmp_path / "first" / "model")}
    with caplog.at_level("INFO", logger="sparsebert"):
        small(docs_corpus, "soft", **corpus).make(tmp_path / "importance")
        small(docs_corpus, "structured", sparsity=0.5, **corpus).make(tmp_path / "second")
    assert caplog.text.count("rests: a gate is learned in its place") == 2
    moved = gates.load(tmp_path / "importance" / "gate.safetensors").logits() != 0
    assert moved.all()
    assert load_model(tmp_path / "importance" / "model").pattern == own
    found = load_model(tmp_path / "second" / "model").pattern
    assert found.sparsity == pytest.approx(0.5, abs=0.05)
