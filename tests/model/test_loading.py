"""Sources of models: what is accepted, and what is refused before anything is run."""

import logging
import pickle
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from sparsebert import load_model, patterns
from sparsebert.errors import ModelError, PatternError, SparseBertError
from sparsebert.files import read_json, write_json
from sparsebert.patterns import star


@pytest.fixture(scope="module")
def good_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "good"
    load_model("scratch:tiny", vocab_size=50).save_pretrained(folder)
    return folder


def copy_of(folder: Path, target: Path) -> Path:
    target.mkdir()
    for file in folder.iterdir():
        (target / file.name).write_bytes(file.read_bytes())
    return target


def test_minilm_and_the_paper_sizes_have_the_expected_shape() -> None:
    minilm = load_model("minilm", "pretraining").config
    assert (minilm.num_hidden_layers, minilm.num_attention_heads, minilm.hidden_size) == (6, 12, 384)
    with torch.device("meta"):
        base = load_model("scratch:base", "pretraining", vocab_size=30_000).config
    assert (base.num_hidden_layers, base.num_attention_heads, base.hidden_size, base.intermediate_size) == (
        12,
        12,
        768,
        3072,
    )


def test_new_heads_are_said_in_one_line_and_drawn_from_the_seed(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="sparsebert"):
        first = load_model("minilm", "sequence_classification", seed=1, num_labels=3)
    assert [record.message for record in caplog.records] == ["new in SparseBertForSequenceClassification: classifier"]
    again = load_model("minilm", "sequence_classification", seed=1, num_labels=3)
    other = load_model("minilm", "sequence_classification", seed=2, num_labels=3)
    assert torch.equal(first.classifier.weight, again.classifier.weight)
    assert not torch.equal(first.classifier.weight, other.classifier.weight)


def test_loading_leaves_torchs_own_generator_alone() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    load_model("scratch:tiny", vocab_size=50)
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("scratch:huge", "scratch:tiny, scratch:mini or scratch:base"),
        ("scratch:tiny", "pass vocab_size"),
        ("/no/such/folder", "no model folder"),
        ("./no-such-folder", "no model folder"),
        ("plainword", "no model folder"),
        ("nobody/no-such-model", "could not be fetched"),
    ],
)
def test_sources_that_are_none_are_refused(source: str, words: str) -> None:
    with pytest.raises(SparseBertError, match=words):
        load_model(source)


def test_a_path_is_a_source_like_its_name(good_folder: Path) -> None:
    by_path, by_name = load_model(good_folder), load_model(str(good_folder))
    assert torch.equal(by_path.embeddings.word_embeddings.weight, by_name.embeddings.word_embeddings.weight)


def test_settings_of_the_model_are_changed_by_name(good_folder: Path) -> None:
    for source in ("scratch:tiny", good_folder):
        vocab_size = 50 if isinstance(source, str) else None
        model = load_model(source, "sequence_classification", vocab_size=vocab_size, dropout=0.3, num_labels=5)
        assert model.classifier.out_features == 5
        rates = {module.p for module in model.modules() if isinstance(module, torch.nn.Dropout)}
        assert rates == {0.3}
        assert model.config.attention_probs_dropout_prob == 0.3


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"num_label": 5}, "did you mean num_labels"),
        ({"hidden_dropout": 0.1}, "did you mean hidden_dropout_prob"),
        ({"patern": None}, "no argument 'patern'"),
        ({"is_decoder": True}, "no argument 'is_decoder'"),
        ({"attn_implementation": "sdpa"}, "no argument 'attn_implementation'"),
        ({"zzz": 1}, "no argument 'zzz'"),
        ({"head": "sequence_clasification"}, "did you mean sequence_classification"),
        ({"head": None}, "no head 'None'"),
        ({"pattern": "star"}, r"pattern is 'star'; expected a sparsebert.Pattern"),
        ({"pattern": star(8, heads=5)}, "5 heads"),
        ({"vocab_size": 51}, "vocabulary of 50, not 51"),
        ({"hidden_act": 7}, "cannot be"),
        ({"num_labels": "many"}, "cannot be"),
    ],
)
def test_arguments_that_nothing_would_come_of_are_refused(
    arguments: dict[str, Any], words: str, good_folder: Path
) -> None:
    sources: list[Any] = [(good_folder, {}), ("scratch:tiny", {"vocab_size": 50})]
    for source, needed in sources:
        if not (source == "scratch:tiny" and "vocab_size" in arguments):
            with pytest.raises(SparseBertError, match=words):
                load_model(source, **{**needed, **arguments})


@pytest.mark.parametrize("arguments", [{"hidden_act": "nope"}, {"hidden_size": 129}, {"num_attention_heads": 0}])
def test_sizes_and_functions_that_cannot_be_built_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(SparseBertError, match="cannot be built with"):
        load_model("scratch:tiny", vocab_size=50, **arguments)


@pytest.mark.parametrize("source", [None, 7, b"minilm"])
def test_what_is_no_name_of_a_source_is_refused(source: Any) -> None:
    with pytest.raises(SparseBertError, match="expected a folder"):
        load_model(source)


CONFIG_CHANGES: dict[str, dict[str, Any]] = {
    "code": {"auto_map": {"AutoModel": "theirs.Model"}},
    "hub-kernel": {"_attn_implementation": "someone/kernel"},
    "other-family": {"model_type": "gpt2"},
    "no-family": {"model_type": None},
    "redirected": {"transformers_weights": "../elsewhere.safetensors"},
    "quantised": {"quantization_config": {"quant_method": "bitsandbytes"}},
    "wrong-type": {"num_hidden_layers": "many"},
    "other-shape": {"intermediate_size": 77},
    "more-layers": {"num_hidden_layers": 3},
    "fewer-layers": {"num_hidden_layers": 1},
}


@pytest.mark.parametrize("change", list(CONFIG_CHANGES))
def test_hostile_or_broken_configurations_are_refused(change: str, good_folder: Path, tmp_path: Path) -> None:
    folder = copy_of(good_folder, tmp_path / "model")
    write_json(folder / "config.json", {**read_json(folder / "config.json"), **CONFIG_CHANGES[change]})
    with pytest.raises(SparseBertError):
        load_model(str(folder))


class _Bomb:
    def __reduce__(self) -> Any:
        return (Path("/").joinpath("tmp", "sparsebert-was-here").touch, ())


def _pickle_only(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(_Bomb()))


def _outside_shard(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    write_json(folder / "model.safetensors.index.json", {"weight_map": {"a": "../model.safetensors"}})


def _missing_shard(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    write_json(folder / "model.safetensors.index.json", {"weight_map": {"a": "b.safetensors"}})


def _giant_header(folder: Path) -> None:
    data = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes((2**62).to_bytes(8, "little") + data[8:])


def _truncated(folder: Path) -> None:
    data = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(data[: len(data) // 2])


WEIGHT_CHANGES = {
    "pickle": _pickle_only,
    "outside": _outside_shard,
    "missing": _missing_shard,
    "giant-header": _giant_header,
    "truncated": _truncated,
    "empty": lambda folder: (folder / "model.safetensors").write_bytes(b""),
    "no-config": lambda folder: (folder / "config.json").unlink(),
    "list-config": lambda folder: (folder / "config.json").write_text("[]"),
    "strange": lambda folder: save_file({"x": torch.zeros(1)}, folder / "model.safetensors", metadata={"format": "pt"}),
}


@pytest.mark.parametrize("change", list(WEIGHT_CHANGES))
def test_hostile_or_broken_weights_are_refused(change: str, good_folder: Path, tmp_path: Path) -> None:
    folder = copy_of(good_folder, tmp_path / "model")
    WEIGHT_CHANGES[change](folder)
    with pytest.raises(SparseBertError):
        load_model(str(folder))
    assert not Path("/tmp/sparsebert-was-here").exists()


def test_a_sparsity_is_picked_from_the_ranking_of_the_pattern() -> None:
    ranked = patterns.from_ranking(12, 2, 2, [(0, 0, 1), (1, 1, 0), (0, 1, 3)], sparsity=0.622)
    model = load_model("scratch:tiny", vocab_size=50, pattern=ranked, sparsity=0.65)
    assert model.pattern == ranked.at_sparsity(0.65) != ranked
    with pytest.raises(ModelError, match="no pattern to pick a sparsity from"):
        load_model("scratch:tiny", vocab_size=50, sparsity=0.9)
    with pytest.raises(PatternError, match="carries no ranking"):
        load_model("scratch:tiny", vocab_size=50, pattern=patterns.star(12), sparsity=0.9)
