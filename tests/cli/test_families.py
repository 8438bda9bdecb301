"""Every command that takes --model takes a RoBERTa, a ModernBERT and a folder of sentence-transformers, as typed."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import transformers
from typer.testing import CliRunner

from sparsebert import load_model
from sparsebert.cli import app
from sparsebert.errors import SparseBertError
from tests.model.sentence_cases import add_sentence_files
from tests.runs.test_families import FAMILIES, LENGTH, SIZES, TEXT, byte_level

KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "roberta": ("Roberta", FAMILIES["Roberta"]),
    "modernbert": ("ModernBert", FAMILIES["ModernBert"]),
    "sentences": ("Bert", {**SIZES, "max_position_embeddings": 40}),
}
SHORT = ("--length", LENGTH, "--steps", 2, "--batch-size", 4, "--set", "num_held_out=1")


def typed(*words: object, given: str = "") -> str:
    done = CliRunner().invoke(app, [*map(str, words)], input=given, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


@pytest.fixture(scope="module", params=KINDS)
def lab(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dense folder and a corpus that it reads."""
    name, sizes = KINDS[request.param]
    folder, tokenizer = tmp_path_factory.mktemp(request.param), byte_level()
    ids = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "vocab_size": tokenizer.get_vocab_size()}
    ids |= {"cls_token_id": 0, "sep_token_id": 2} if name == "ModernBert" else {}
    config = getattr(transformers, f"{name}Config")(**sizes, **ids)
    getattr(transformers, f"{name}Model")(config).save_pretrained(folder / "dense")
    (folder / "dense" / "tokenizer.json").write_text(tokenizer.to_str())
    about = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "cls_token": "<s>",
        "sep_token": "</s>",
        "pad_token": "<pad>",
    }
    (folder / "dense" / "tokenizer_config.json").write_text(json.dumps(about))
    if request.param == "sentences":
        add_sentence_files(folder / "dense", SIZES["hidden_size"])
    texts = [folder / f"{number}.txt" for number in range(12)]
    for number, path in enumerate(texts):
        path.write_text(f"This is document {number}. {TEXT}")
    typed("prepare", *texts, "--model", folder / "dense", "--held-out", 0.4, "--out", folder / "corpus")
    return folder


def test_text_commands_take_it_and_give_its_kind_back(lab: Path) -> None:
    dense, on = lab / "dense", ("--corpus", lab / "corpus")
    said = typed("importance", "--model", dense, *on, *SHORT, "--out", lab / "importance")
    assert "diagonal" in said
    assert (lab / "importance" / "report.html").is_file()
    typed("search", "--model", dense, *on, "--sparsity", 0.7, *SHORT, "--out", lab / "found")
    typed("adapt", "--model", lab / "found", *on, *SHORT, "--out", lab / "adapted")
    said = typed("pretrain", "--model", dense, *on, "--pattern", "star", *SHORT, "--out", lab / "trained")
    assert "held-out MLM loss" in said
    for run in ("found", "adapted", "trained"):
        model = load_model(lab / run / "model")
        assert type(model).__name__ == f"Sparse{type(load_model(dense)).__name__.removeprefix('Sparse')}"
        assert model.pattern.sparsity > 0.5
        assert (lab / run / "model" / "modules.json").exists() == (dense / "modules.json").exists()
    told = json.loads(typed("compare", dense, lab / "adapted", *on, "--rows", 16, "--json"))
    assert told["rows"] == 16
    with pytest.raises(SparseBertError, match="corpus"):
        typed("search", "--model", dense, "--corpus", lab, "--sparsity", 0.7, *SHORT, "--out", lab / "no")


def test_encode_takes_it(lab: Path) -> None:
    (lab / "texts.txt").write_text("The cat sat.\nA pattern says who.\n")
    typed("encode", lab / "texts.txt", "--model", lab / "dense", "--pattern", "star", "--out", lab / "all.npy")
    assert np.load(lab / "all.npy").shape == (2, SIZES["hidden_size"])
    typed("encode", lab / "texts.txt", "--model", lab / "dense", "--chunks", 4, "--out", lab / "chunks.jsonl")
    rows = [json.loads(line) for line in (lab / "chunks.jsonl").read_text().splitlines()]
    assert [(one["row"], one["chunk"]) for one in rows] == [(0, 0), (1, 0), (1, 1)]
    with pytest.raises(SparseBertError, match="jsonl"):
        typed("encode", lab / "texts.txt", "--model", lab / "dense", "--chunks", 4, "--out", lab / "chunks.npy")


def test_a_task_is_fine_tuned_and_predicted(lab: Path) -> None:
    sizes = ("--length", LENGTH, "--max-rows", 16, "--max-dev-rows", 8, "--epochs", 1)
    typed("finetune", "rte", "--model", lab / "dense", "--pattern", "star", *sizes, "--out", lab / "task")
    said = typed("predict", lab / "task", given="The cat sat.\tA cat sat.\n")
    assert "entailment" in said
