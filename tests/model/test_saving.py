"""What is saved comes back exactly as sparse, and never as dense."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import BertConfig, BertForSequenceClassification, BertModel

from sparsebert import Pattern, SparseBertForSequenceClassification, load_model, patterns, sparsify
from sparsebert.errors import ModelError, SparseBertError
from sparsebert.files import read_json, write_json
from sparsebert.model.families import HEADS

PATTERN = patterns.big_bird(20, heads=2, seed=7)

_RELOAD = """
import sys, torch, sparsebert
from transformers import AutoModelForSequenceClassification
model = AutoModelForSequenceClassification.from_pretrained(sys.argv[1]).eval()
with torch.no_grad():
    logits = model(input_ids=torch.arange(1, 19).view(1, 18)).logits
print(type(model).__name__, model.pattern.digest, logits.numpy().tobytes().hex())
"""
_WITHOUT_US = """
import sys
from transformers import AutoConfig, AutoModel
for auto in (AutoConfig, AutoModel):
    for asked in ({}, {"trust_remote_code": False}, {"trust_remote_code": True}):
        try:
            auto.from_pretrained(sys.argv[1], **asked)
        except Exception as error:
            print()
            print("refused:", " ".join(str(error).split()))
assert "sparsebert" not in sys.modules
"""


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    model = load_model("scratch:tiny", "sequence_classification", vocab_size=50, pattern=PATTERN)
    model.save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def run(code: str, folder: Path) -> str:
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, str(folder)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "HF_HOME": str(folder.parent / "hub")},
    ).stdout


@pytest.mark.long
def test_an_auto_class_in_a_new_process_gives_the_same_bits(saved: Path) -> None:
    model = load_model(str(saved), "sequence_classification").eval()
    with torch.no_grad():
        logits = model(input_ids=torch.arange(1, 19).view(1, 18)).logits
    name, digest, bits = run(_RELOAD, saved).split()
    assert name == "SparseBertForSequenceClassification"
    assert digest == PATTERN.digest
    assert bits == logits.numpy().tobytes().hex()


@pytest.mark.long
def test_auto_classes_without_the_package_refuse_the_folder_and_name_it(saved: Path) -> None:
    said = [line for line in run(_WITHOUT_US, saved).splitlines() if line.startswith("refused")]
    assert len(said) == 6
    for line in said:
        assert "needs the package sparsebert: import sparsebert" in line


def test_berts_own_class_refuses_the_folder_and_says_why(saved: Path) -> None:
    with pytest.raises(Exception, match="import sparsebert"):
        BertModel.from_pretrained(saved)


@pytest.mark.parametrize("head", list(HEADS))
def test_every_class_comes_back_bit_for_bit(head: Any, tmp_path: Path) -> None:
    model = load_model("scratch:tiny", head, vocab_size=50, pattern=PATTERN.anchored("token"))
    model.save_pretrained(tmp_path)
    again = load_model(str(tmp_path), head)
    assert again.pattern == model.pattern
    assert again.pattern.rule == model.pattern.rule
    before, after = model.state_dict(), again.state_dict()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[key], after[key]) for key in before)


def test_a_pattern_with_layers_comes_back_with_them(tmp_path: Path) -> None:
    pattern = patterns.per_layer([PATTERN, patterns.window(PATTERN.length, PATTERN.heads)])
    model = load_model("scratch:tiny", vocab_size=50, pattern=pattern).eval()
    model.save_pretrained(tmp_path)
    again = load_model(tmp_path).eval()
    assert again.pattern == pattern
    assert again.pattern.layers == 2
    tokens = torch.arange(1, 19).view(1, 18)
    assert torch.equal(again(input_ids=tokens).last_hidden_state, model(input_ids=tokens).last_hidden_state)
    model.set_pattern(pattern.layer(0))
    assert not torch.equal(again(input_ids=tokens).last_hidden_state, model(input_ids=tokens).last_hidden_state)


def test_weights_lie_where_products_round_as_they_did_before_saving(saved: Path) -> None:
    model = load_model(str(saved), "sequence_classification")
    assert {parameter.data_ptr() % 64 for parameter in model.parameters()} == {0}


def test_half_precision_weights_keep_the_pattern_whole(saved: Path) -> None:
    model = SparseBertForSequenceClassification.from_pretrained(saved, dtype=torch.bfloat16)
    assert model.dtype == torch.bfloat16
    assert model.pattern == PATTERN


def test_a_dense_model_is_saved_and_comes_back_dense(tmp_path: Path) -> None:
    load_model("scratch:tiny", "masked_lm", vocab_size=50).save_pretrained(tmp_path)
    assert load_model(str(tmp_path), "masked_lm").pattern is None


def test_a_bert_made_sparse_in_place_is_saved_as_its_sparse_class(tmp_path: Path) -> None:
    config = BertConfig(
        vocab_size=50, num_hidden_layers=2, hidden_size=128, num_attention_heads=2, intermediate_size=64
    )
    model = sparsify(BertForSequenceClassification(config).eval(), PATTERN)
    model.save_pretrained(tmp_path)
    again = load_model(str(tmp_path), "sequence_classification").eval()
    tokens = torch.arange(1, 19).view(1, 18)
    assert again.pattern == PATTERN
    assert torch.equal(again(input_ids=tokens).logits, model(input_ids=tokens).logits)


def as_earlier_versions_saved(folder: Path) -> None:
    """The pattern as two tensors of the encoder."""
    weights, pattern = load_file(folder / "model.safetensors"), Pattern.load(folder / "pattern.safetensors")
    weights["bert.pattern_row_starts"] = torch.tensor(pattern.row_starts)
    weights["bert.pattern_keys"] = torch.tensor(pattern.keys)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "pattern.safetensors").unlink()


def test_a_folder_that_an_earlier_version_saved_still_loads(saved: Path, tmp_path: Path) -> None:
    as_earlier_versions_saved(saved)
    model = load_model(saved, "sequence_classification")
    assert model.pattern == PATTERN
    assert model.pattern.rule == PATTERN.rule
    model.save_pretrained(tmp_path / "again")
    assert not [name for name in load_file(tmp_path / "again" / "model.safetensors") if "pattern" in name]
    assert load_model(tmp_path / "again", "sequence_classification").pattern == PATTERN


@pytest.mark.parametrize("change", ["file", "other-file", "no-file", "anchor", "digest", "sizes", "extra", "shape"])
def test_a_changed_folder_is_refused(saved: Path, change: str) -> None:
    config, weights = read_json(saved / "config.json"), load_file(saved / "model.safetensors")
    path = saved / "pattern.safetensors"
    if change == "file":
        path.write_bytes(path.read_bytes()[:-1] + b"\xff")
    elif change == "other-file":
        patterns.big_bird(20, heads=2, seed=8).save(path)
    elif change == "no-file":
        path.unlink()
    elif change == "anchor":
        config["pattern"]["anchor"] = "token"
    elif change == "digest":
        config["pattern"]["digest"] = "0" * 64
    elif change == "sizes":
        config["pattern"]["kept"] += 1
    elif change == "extra":
        weights["bert.more"] = torch.zeros(1)
    elif change == "shape":
        config["hidden_size"] = 64
    save_file(weights, saved / "model.safetensors", metadata={"format": "pt"})
    write_json(saved / "config.json", config)
    with pytest.raises(SparseBertError):
        load_model(saved, "sequence_classification")


@pytest.mark.parametrize("change", ["entry", "anchor", "digest", "sizes", "missing", "extra", "shape", "attention"])
def test_a_changed_folder_of_an_earlier_version_is_refused(saved: Path, change: str) -> None:
    as_earlier_versions_saved(saved)
    config, weights = read_json(saved / "config.json"), load_file(saved / "model.safetensors")
    if change == "entry":
        row = weights["bert.pattern_keys"]
        row[0] = 1 - row[0]
    elif change == "anchor":
        config["pattern"]["anchor"] = "token"
    elif change == "digest":
        config["pattern"]["digest"] = "0" * 64
    elif change == "sizes":
        config["pattern"]["kept"] += 1
    elif change == "missing":
        del weights["bert.pattern_keys"]
    elif change == "extra":
        weights["bert.more"] = torch.zeros(1)
    elif change == "shape":
        config["hidden_size"] = 64
    elif change == "attention":
        config["_attn_implementation"] = "someone/their-kernel"
    save_file(weights, saved / "model.safetensors", metadata={"format": "pt"})
    write_json(saved / "config.json", config)
    with pytest.raises(ModelError):
        load_model(str(saved), "sequence_classification")


def test_another_attention_is_refused(saved: Path) -> None:
    with pytest.raises(ModelError, match="runs only 'sparsebert'"):
        SparseBertForSequenceClassification.from_pretrained(saved, attn_implementation="sdpa")
