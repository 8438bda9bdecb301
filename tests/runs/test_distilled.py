"""Search by distillation and adapt, from settings to a run folder: what they leave, resume and refuse."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import sparsebert
from sparsebert import Pattern, gates, load_model, patterns
from sparsebert.errors import ConfigError
from sparsebert.progress import Watcher
from sparsebert.runs import AdaptRun, PretrainRun, SearchRun
from sparsebert.runs.distilled import teacher_of
from sparsebert.text import TokenStore
from sparsebert.training.comparison import ModelComparison

SMALL = {"length": 24, "batch_size": 4, "num_held_out": 1}


@pytest.fixture(scope="module")
def dense(docs_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that has weights, with attention that is not even: a teacher must be hard to agree with."""
    folder = tmp_path_factory.mktemp("dense") / "run"
    shape = {"initializer_range": 0.2, "max_position_embeddings": 32}
    PretrainRun(model="scratch:tiny", corpus=docs_corpus, steps=1, shape=shape, **SMALL).make(folder)  # type: ignore[arg-type]
    return folder


def search(corpus: Path, dense: Path, **changes: Any) -> SearchRun:
    return SearchRun.read({"model": str(dense), "corpus": corpus, "steps": 4, "sparsity": 0.7, **SMALL, **changes})


def adapt(corpus: Path, model: Path, **changes: Any) -> AdaptRun:
    return AdaptRun.read({"model": str(model), "corpus": corpus, "steps": 3, **SMALL, **changes})


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return dict(load_model(str(folder / "model")).named_parameters())


def same_weights(one: Path, other: Path) -> bool:
    left, right = weights(one), weights(other)
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)


@pytest.fixture(scope="module")
def found(docs_corpus: Path, dense: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("found") / "run"
    search(docs_corpus, dense).make(folder)
    return folder


def test_a_search_of_trained_weights_distils_and_leaves_them_as_they_were(dense: Path, found: Path) -> None:
    assert same_weights(found, dense)
    pattern = Pattern.load(found / "pattern.safetensors")
    assert (pattern.layers, pattern.heads) == (2, 2)
    assert load_model(str(found / "model")).pattern == pattern
    gate = gates.load(found / "gate.safetensors")
    assert gate.settings.learned_border
    assert not torch.equal(gate.alpha, torch.zeros_like(gate.alpha))
    result = json.loads((found / "result.json").read_text())
    assert result["metric"] == "embedding_distance"
    assert result["score"] == pytest.approx(result["metrics"]["embedding_distance"])


def test_a_search_tells_what_it_kept_of_the_dense_model(found: Path) -> None:
    made = ModelComparison.from_json(json.loads((found / "comparison.json").read_text()))
    result = json.loads((found / "result.json").read_text())
    assert made.sparsity == Pattern.load(found / "pattern.safetensors").sparsity
    assert 1 - made.embedding_cosine == pytest.approx(result["score"])
    assert len(made.layer_errors) == 2
    assert sum(one.rows for one in made.lengths) == made.rows == 4
    card = (found / "model" / "README.md").read_text()
    assert f"{made.embedding_cosine:.4f}" in card


def test_the_pattern_of_a_search_gives_other_sparsities_that_are_nested(found: Path) -> None:
    pattern = Pattern.load(found / "pattern.safetensors")
    denser, sparser = pattern.at_sparsity(0.5), pattern.at_sparsity(0.8)
    assert sparser.sparsity > pattern.sparsity > denser.sparsity
    assert (sparser & denser) == sparser
    model = load_model(str(found / "model"), pattern=pattern, sparsity=0.5)
    assert model.pattern == denser


def test_one_search_serves_several_sparsities(docs_corpus: Path, dense: Path, tmp_path: Path) -> None:
    run = search(docs_corpus, dense, sparsity=None, sparsities=(0.5, 0.7, 0.8))
    fields = run.make(tmp_path).fields
    pattern = Pattern.load(tmp_path / "pattern.safetensors")
    assert pattern.sparsity == pytest.approx(0.8, abs=0.03)
    assert [one["sparsity"] for one in fields["at_sparsities"]] == pytest.approx([0.5, 0.7, 0.8], abs=0.03)
    distances = [one["embedding_distance"] for one in fields["at_sparsities"]]
    assert distances[0] < distances[2]
    assert distances[2] == pytest.approx(fields["score"])


def test_weights_may_be_trained_beside_the_gate(docs_corpus: Path, dense: Path, tmp_path: Path) -> None:
    search(docs_corpus, dense, weights="trained", layers="shared").make(tmp_path)
    assert not same_weights(tmp_path, dense)
    assert Pattern.load(tmp_path / "pattern.safetensors").layers == 1


def test_a_distilled_model_keeps_the_dropout_that_it_came_with(docs_corpus: Path, dense: Path, found: Path) -> None:
    before, after = (json.loads((run / "model" / "config.json").read_text()) for run in (dense, found))
    for name in ("hidden_dropout_prob", "attention_probs_dropout_prob"):
        assert after[name] == before[name] > 0


def test_single_entries_are_learned_from_what_they_share_and_led_for_longer_texts_than_lines(
    docs_corpus: Path, dense: Path, tmp_path: Path
) -> None:
    run = search(docs_corpus, dense, kind="unstructured")
    of_lines, of_weights = search(docs_corpus, dense).lead, adapt(docs_corpus, dense, pattern="star").lead
    assert of_lines.full_rows < run.lead.full_rows < of_weights.full_rows
    assert replace(run, full_rows=0.25).lead == replace(run.lead, full_rows=0.25)
    run.make(tmp_path)
    gate = gates.load(tmp_path / "gate.safetensors")
    assert sorted(gate.shared) == ["key", "offset", "query"]
    assert all(values.abs().sum() > 0 for values in gate.shared.values())
    pattern = Pattern.load(tmp_path / "pattern.safetensors")
    assert (pattern.layers, pattern.rule) == (2, None)
    assert pattern.sparsity == pytest.approx(0.7, abs=1e-3)
    assert (pattern.keep() != pattern.keep().swapaxes(-1, -2)).any()


def test_another_teacher_under_the_same_name_is_noticed(docs_corpus: Path, dense: Path, tmp_path: Path) -> None:
    teacher = tmp_path / "teacher"
    shutil.copytree(dense, teacher)
    run = adapt(docs_corpus, dense, pattern="star", steps=1, teacher=str(teacher))
    run.make(tmp_path / "run")
    changed = load_model(str(teacher / "model"))
    torch.nn.init.zeros_(changed.get_input_embeddings().weight)
    changed.save_pretrained(teacher / "model")
    with pytest.raises(ConfigError, match="teacher_sha256"):
        run.make(tmp_path / "run")


def test_a_teacher_may_be_weights_alone_but_not_of_fewer_words(docs_corpus: Path, dense: Path, tmp_path: Path) -> None:
    load_model(str(dense / "model")).save_pretrained(tmp_path / "bare")
    run = adapt(docs_corpus, dense, pattern="star", steps=1, teacher=str(tmp_path / "bare"))
    run.make(tmp_path / "run")
    load_model("scratch:tiny", "none", vocab_size=50).save_pretrained(tmp_path / "small")
    with pytest.raises(ConfigError, match="knows 50 words, the corpus has"):
        replace(run, teacher=str(tmp_path / "small")).make(tmp_path / "other")


def test_adapt_goes_on_from_the_weights_of_a_search_with_the_same_teacher(
    docs_corpus: Path, dense: Path, tmp_path: Path
) -> None:
    searched, adapted = tmp_path / "searched", tmp_path / "adapted"
    search(docs_corpus, dense, weights="trained").make(searched)
    adapt(docs_corpus, searched, steps=1, learning_rate=0.0).make(adapted)
    assert same_weights(adapted, searched)
    assert load_model(str(adapted / "model")).pattern == Pattern.load(searched / "pattern.safetensors")
    assert teacher_of(str(adapted)) == str(dense)
    rates = [json.loads((run / "metrics.jsonl").read_text().splitlines()[-1])["lr"] for run in (searched, adapted)]
    assert rates == [pytest.approx(1e-4 / 4), 0.0]  # the last of four steps, as adapt would have it


def test_two_levels_give_the_gate_rows_of_its_own(docs_corpus: Path, dense: Path, found: Path, tmp_path: Path) -> None:
    search(docs_corpus, dense, levels=2, weights="trained").make(tmp_path)
    one, two = (gates.load(folder / "gate.safetensors").alpha for folder in (found, tmp_path))
    assert not torch.equal(one, two)


def test_keys_are_learned_on_short_rows_if_these_have_twice_as_many() -> None:
    given = {"model": "minilm", "corpus": Path("corpus"), "steps": 4}
    lengths = {keys: SearchRun.read({**given, "keys": keys}).length for keys in (32, 64, 65, 129)}
    assert lengths == {32: 128, 64: 128, 65: 256, 129: 512}
    assert SearchRun.read({**given, "keys": 32, "length": 512}).length == 512
    # Without a ranking keys cannot be counted at another length than they are learned at.
    for other in ({"objective": "mlm"}, {"kind": "unstructured"}, {"diagonal": "drop"}):
        assert SearchRun.read({**given, "keys": 32, **other}).length == 512


def test_keys_are_counted_on_the_longest_rows_the_model_reads(docs_corpus: Path, dense: Path, tmp_path: Path) -> None:
    search(docs_corpus, dense, sparsity=None, keys=6, length=16).make(tmp_path)
    pattern = Pattern.load(tmp_path / "pattern.safetensors")
    assert pattern.length == 32
    assert pattern.keys_per_query == pytest.approx(6, abs=0.5)
    assert load_model(str(tmp_path / "model")).pattern == pattern


def test_a_short_model_learns_keys_on_the_longest_rows_it_reads(docs_corpus: Path, dense: Path) -> None:
    given = {"model": str(dense), "corpus": docs_corpus, "steps": 4, "keys": 8}
    run = SearchRun.read(given)
    assert run.length == 32
    assert run.target(run.length) == 0.75
    assert SearchRun.read({**given, "length": 16}).target(16) == 0.5
    with pytest.raises(ConfigError, match="keys is 40 but rows have 16 tokens"):
        SearchRun.read({**given, "keys": 40, "length": 16}).target(16)


def test_adapted_weights_come_nearer_to_the_dense_model(docs_corpus: Path, found: Path, tmp_path: Path) -> None:
    result = adapt(docs_corpus, found, steps=30, learning_rate=1e-3).make(tmp_path)
    assert not same_weights(tmp_path, found)
    assert load_model(str(tmp_path / "model")).pattern == Pattern.load(found / "pattern.safetensors")
    before = json.loads((found / "result.json").read_text())["score"]
    assert result.fields["score"] < 0.9 * before


def test_adapt_as_a_function_gives_the_model_that_its_run_saved(docs_corpus: Path, dense: Path, tmp_path: Path) -> None:
    star = patterns.star(24)
    model = sparsebert.adapt(str(dense), docs_corpus, tmp_path, pattern=star, steps=2, **SMALL)
    assert model.pattern == star
    saved = weights(tmp_path)
    assert all(torch.equal(one, saved[name]) for name, one in model.named_parameters())
    assert not same_weights(tmp_path, dense)


def test_a_weight_on_the_embeddings_counts_in_the_loss(docs_corpus: Path, found: Path, tmp_path: Path) -> None:
    first = {}
    for weight in (None, 1.0, 4.0):
        folder = tmp_path / str(weight)
        adapt(docs_corpus, found, embedding_weight=weight).make(folder)
        first[weight] = json.loads((folder / "metrics.jsonl").read_text().splitlines()[0])
    assert first[None] == first[4.0]
    extra = first[4.0]["loss"] - first[1.0]["loss"]
    assert extra == pytest.approx(3 * first[1.0]["embedding_distance"], rel=1e-4)


def test_the_teacher_is_whom_the_weights_began_as(docs_corpus: Path, dense: Path, found: Path, tmp_path: Path) -> None:
    adapt(docs_corpus, found).make(tmp_path / "first")
    assert teacher_of(str(tmp_path / "first")) == str(dense)
    assert teacher_of(str(dense)) == str(dense)
    objective = adapt(docs_corpus, tmp_path / "first").build(
        TokenStore.open(docs_corpus), {"num_attention_heads": 2, "num_hidden_layers": 2}
    )
    taught = dict(objective.teacher.model.named_parameters())  # type: ignore[union-attr]
    assert all(torch.equal(taught[name], tensor) for name, tensor in weights(dense).items())
    assert objective.teacher.model.pattern is None  # type: ignore[union-attr]


def test_the_teacher_is_found_from_any_folder(
    docs_corpus: Path, dense: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(dense.parent)
    search(docs_corpus, Path("run")).make(tmp_path / "elsewhere")
    search(docs_corpus, Path("run")).make(Path("deeper/found"))
    monkeypatch.chdir(tmp_path)
    assert Path(teacher_of(str(dense.parent / "deeper/found"))) == dense
    assert teacher_of("elsewhere") == "run"  # nowhere above it: as it was named


def test_a_model_that_learned_by_mlm_is_its_own_teacher(docs_corpus: Path, tmp_path: Path) -> None:
    run = SearchRun.read({"model": "scratch:tiny", "corpus": docs_corpus, "steps": 2, "sparsity": 0.6, **SMALL})
    run.make(tmp_path / "scratch")
    assert teacher_of(str(tmp_path / "scratch")) == str(tmp_path / "scratch")
    adapt(docs_corpus, tmp_path / "scratch", steps=1).make(tmp_path / "adapted")
    assert teacher_of(str(tmp_path / "adapted")) == str(tmp_path / "scratch")


def test_a_pattern_without_a_rule_serves_shorter_rows(docs_corpus: Path, dense: Path, tmp_path: Path) -> None:
    patterns.from_keep(patterns.star(32).keep()).save(tmp_path / "p.safetensors")
    given = {"pattern": str(tmp_path / "p.safetensors"), "steps": 1}
    adapt(docs_corpus, dense, **given).make(tmp_path / "run")
    assert load_model(str(tmp_path / "run" / "model")).pattern.length == 32


def test_rows_beyond_the_models_positions_extend_them(docs_corpus: Path, found: Path, tmp_path: Path) -> None:
    adapt(docs_corpus, found, length=64, batch_size=2).make(tmp_path)
    model = load_model(str(tmp_path / "model"))
    assert model.config.max_position_embeddings == 64
    assert model.pattern == Pattern.load(found / "pattern.safetensors").at(64)


class _StopsAfter(Watcher):
    """A watcher that breaks off a run, as a kill would."""

    def __init__(self, step: int) -> None:
        self.at = step

    def step(self, done: int, words: str, left: float) -> None:
        if done == self.at:
            raise KeyboardInterrupt


@pytest.mark.parametrize("kind", ["search", "adapt"])
def test_a_run_that_was_stopped_ends_with_the_same_bits(
    docs_corpus: Path, dense: Path, found: Path, tmp_path: Path, kind: str
) -> None:
    often = {"checkpoint_every": 1}
    start = (
        search(docs_corpus, dense, weights="trained", **often)
        if kind == "search"
        else adapt(docs_corpus, found, **often)
    )
    start.make(tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        start.make(tmp_path / "stopped", _StopsAfter(2))
    assert start.make(tmp_path / "stopped").resumed_from > 0
    names = ["result.json", "metrics.jsonl", "pattern.safetensors", "comparison.json", "model/model.safetensors"]
    for name in names + (["gate.safetensors"] if kind == "search" else []):
        assert (tmp_path / "stopped" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"objective": "mlm", "weights": "frozen"}, "its new head has to learn"),
        ({"objective": "mlm", "teacher": "minilm"}, "has no teacher"),
        ({"keys": 3}, "leave one out"),
        ({"objective": "distil"}, "objective"),
        ({"sparsities": (0.8, 0.9)}, "leave one out"),
        ({"sparsity": None, "sparsities": ()}, "at least one"),
        ({"sparsity": None, "sparsities": (0.9,), "kind": "unstructured"}, "structured gate"),
    ],
)
def test_what_does_not_go_together_is_refused(
    docs_corpus: Path, dense: Path, changes: dict[str, Any], says: str
) -> None:
    with pytest.raises(ConfigError, match=says):
        search(docs_corpus, dense, **changes)


def test_a_model_without_weights_cannot_teach_itself(docs_corpus: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no weights to learn from"):
        search(docs_corpus, Path("scratch:tiny"), objective="distill").make(tmp_path / "run")
    assert not search(docs_corpus, Path("scratch:tiny")).is_distilled


def test_there_is_nothing_to_adapt_to_without_a_pattern(docs_corpus: Path, dense: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nothing to adapt to"):
        adapt(docs_corpus, dense).make(tmp_path / "run")
