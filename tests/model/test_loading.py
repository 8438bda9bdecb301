"""Sources of models: what is accepted, and what is refused before anything is run."""

import logging
import pickle
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from sparsebert import load_model
from sparsebert.errors import SparseBertError
from sparsebert.files import read_json, write_json


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
