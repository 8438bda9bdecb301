"""Int8 models on disk: the same bits, or a sentence."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from sparsebert import load_model, patterns, quantize, sparsify
from sparsebert.errors import FileError, ModelError
from sparsebert.files import open_sealed_tensors, seal_tensors
from sparsebert.model.folder_checks import INT8_FILE
from sparsebert.model.heads import pattern_of
from sparsebert.model.saving import save_model
from tests.model.cases import tiny, tokens
from tests.model.test_quantisation import FAMILIES, WINDOW, inputs, small, states


@pytest.fixture
def saved(tmp_path: Path) -> tuple[Path, torch.Tensor]:
    model = quantize(tiny().eval().set_pattern(patterns.window(12, radius=2)))
    save_model(model, tmp_path / "model")
    return tmp_path / "model", logits(model)


@torch.no_grad()
def logits(model: Any) -> torch.Tensor:
    found: torch.Tensor = model(input_ids=tokens()).logits
    return found


def test_a_saved_model_comes_back_to_the_bit(saved: tuple[Path, torch.Tensor], tmp_path: Path) -> None:
    folder, expected = saved
    model = load_model(folder, "sequence_classification")
    assert torch.equal(logits(model), expected)
    assert model.pattern == patterns.window(12, radius=2)
    save_model(model, tmp_path / "again")
    assert (tmp_path / "again" / INT8_FILE).read_bytes() == (folder / INT8_FILE).read_bytes()


def test_the_file_is_a_quarter_as_large_where_weights_are_most_of_it(tmp_path: Path) -> None:
    sizes = {"hidden_size": 64, "intermediate_size": 512, "num_attention_heads": 2}
    model = load_model("scratch:tiny", vocab_size=50, max_position_embeddings=16, **sizes)
    save_model(model, tmp_path / "float32")
    save_model(quantize(model), tmp_path / "int8")
    small, large = (tmp_path / "int8" / INT8_FILE).stat(), (tmp_path / "float32" / "model.safetensors").stat()
    assert small.st_size < 0.35 * large.st_size


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_comes_back_to_the_bit(family: str, sparse: bool, tmp_path: Path) -> None:
    model, given = small(family), inputs(family)
    if sparse:
        sparsify(model, WINDOW)
    expected = states(quantize(model), given)
    model.save_pretrained(tmp_path)
    again = load_model(tmp_path)
    # A dense BERT comes back as our class, whose attention rounds in its own way, as do ModernBERT's local layers.
    if sparse or family not in ("Bert", "ModernBert"):
        assert torch.equal(states(again, given), expected)
    assert torch.allclose(states(again, given), expected, atol=0.1)
    assert pattern_of(again) == (WINDOW if sparse else None)


@pytest.mark.parametrize("family", FAMILIES)
def test_transformers_refuses_the_folder(family: str, tmp_path: Path) -> None:
    model = quantize(small(family))
    model.save_pretrained(tmp_path)
    for cls in (transformers.AutoModel, type(model)):
        with pytest.raises(OSError, match=r"model\.safetensors"):
            cls.from_pretrained(tmp_path)


def test_a_sparse_folder_is_refused_by_our_auto_classes_with_the_way_to_open_it(
    saved: tuple[Path, torch.Tensor],
) -> None:
    with pytest.raises(ModelError, match=r"open it with sparsebert\.load_model"):
        transformers.AutoModel.from_pretrained(saved[0])


def test_another_head_is_new_and_the_encoder_the_same(saved: tuple[Path, torch.Tensor]) -> None:
    folder, _ = saved
    bare, headed = load_model(folder), load_model(folder, "sequence_classification")
    with torch.no_grad():
        assert torch.equal(bare(tokens())[0], headed.base_model(tokens())[0])


def test_one_flipped_bit_is_noticed(saved: tuple[Path, torch.Tensor]) -> None:
    path = saved[0] / INT8_FILE
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    path.write_bytes(data)
    with pytest.raises(FileError, match="damaged"):
        load_model(saved[0])


def spoil(folder: Path, change: Any) -> None:
    path = folder / INT8_FILE
    tensors, about = open_sealed_tensors(path.read_bytes(), path)
    tensors = dict(tensors)
    change(tensors, about)
    path.write_bytes(seal_tensors(tensors, about))


QKV = "bert.encoder.layer.0.attention.self.qkv"


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda tensors, about: about.update(format=2), "no int8 model of format 1"),
        (lambda tensors, about: tensors.pop(f"{QKV}.weight"), "lacks 1 tensors"),
        (lambda tensors, about: tensors.update({"bert.strange": tensors[f"{QKV}.bias"]}), "no place for"),
        (lambda tensors, about: tensors.update({f"{QKV}.bias": tensors[f"{QKV}.bias"][1:]}), "does not fit"),
        (
            lambda tensors, about: tensors.update({f"{QKV}.sums": tensors[f"{QKV}.sums"] + 1}),
            "not those of its weights",
        ),
        (lambda tensors, about: tensors.update({f"{QKV}.scale": tensors[f"{QKV}.scale"].astype("f8")}), "as float64"),
    ],
)
def test_a_sealed_file_with_other_contents_is_refused(
    saved: tuple[Path, torch.Tensor], change: Any, sentence: str
) -> None:
    spoil(saved[0], change)
    with pytest.raises(ModelError, match=sentence):
        load_model(saved[0])


def test_code_is_not_run_and_the_family_and_the_head_say_what_is_built(tmp_path: Path) -> None:
    quantize(small("Roberta")).save_pretrained(tmp_path)
    spoil(tmp_path, lambda tensors, about: about.update({"class": "AutoTokenizer"}))
    assert type(load_model(tmp_path)).__name__ == "SparseRobertaModel"
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "auto_map": {"AutoConfig": "evil.Config"}}))
    with pytest.raises(ModelError, match="auto_map"):
        load_model(tmp_path)


def test_saving_takes_no_other_weights(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="state_dict"):
        quantize(tiny().eval()).save_pretrained(tmp_path, state_dict={})


def test_a_folder_takes_weights_of_one_kind(saved: tuple[Path, torch.Tensor], tmp_path: Path) -> None:
    folder, _ = saved
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(ModelError, match=f"holds the weights of another model .{INT8_FILE}.*folders of their own"):
        tiny().save_pretrained(folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    tiny().save_pretrained(tmp_path / "float32")
    with pytest.raises(ModelError, match=r"another model .model.safetensors.*folders of their own"):
        quantize(tiny()).save_pretrained(tmp_path / "float32")
    assert not (tmp_path / "float32" / INT8_FILE).exists()


@pytest.mark.parametrize("other", ["model.safetensors", "model.safetensors.index.json"])
def test_a_folder_that_holds_both_kinds_is_refused(
    saved: tuple[Path, torch.Tensor], tmp_path: Path, other: str
) -> None:
    folder, _ = saved
    tiny().save_pretrained(tmp_path / "float32")
    (folder / other).write_bytes((tmp_path / "float32" / "model.safetensors").read_bytes())
    with pytest.raises(ModelError, match="folders of their own"):
        load_model(folder)
