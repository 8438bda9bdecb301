"""Runs on a folder of sentence-transformers leave such a folder."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from sparsebert import Pattern, encode
from sparsebert.files import read_json
from sparsebert.runs import AdaptRun, FinetuneRun, PretrainRun, SearchRun
from tests.model.sentence_cases import add_sentence_files

SMALL = {"length": 24, "batch_size": 4, "num_held_out": 1}
TEXTS = ["Rivers run to the sea.", "They carry sand, and they carry boats, and some of them are long. " * 20]


@pytest.fixture(scope="module")
def sentences(docs_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of the corpus's vocabulary with 48 positions, which cuts texts at 40 tokens."""
    folder = tmp_path_factory.mktemp("sentences")
    shape = {"initializer_range": 0.2, "max_position_embeddings": 48}
    PretrainRun(model="scratch:tiny", corpus=docs_corpus, steps=1, shape=shape, **SMALL).make(folder / "run")  # type: ignore[arg-type]
    shutil.copytree(folder / "run" / "model", folder / "model")
    return add_sentence_files(folder / "model", 128)


def opened_as_encoded(folder: Path, max_length: int) -> Any:
    """The model that SentenceTransformer opens there; it makes the embeddings that encode makes."""
    model = SentenceTransformer(str(folder), device="cpu")
    assert [type(part).__name__ for part in model] == ["Transformer", "Pooling", "Normalize"]
    assert model.max_seq_length == max_length
    np.testing.assert_allclose(model.encode(TEXTS), encode(TEXTS, folder), atol=1e-6)
    return model


def test_search_and_adapt_give_such_a_folder_back(docs_corpus: Path, sentences: Path, tmp_path: Path) -> None:
    given = {"corpus": docs_corpus, "steps": 2, **SMALL}
    SearchRun.read({"model": str(sentences), "sparsity": 0.7, **given}).make(tmp_path / "found")
    model = opened_as_encoded(tmp_path / "found" / "model", 40)
    assert model.pattern == Pattern.load(tmp_path / "found" / "pattern.safetensors")
    card = (tmp_path / "found" / "model" / "README.md").read_text()
    assert "SentenceTransformer(" in card
    assert f"Sparsity of attention: {100 * model.pattern.sparsity:.2f} %" in card
    assert "sparsebert encode" in card
    about = read_json(tmp_path / "found" / "model" / "config_sentence_transformers.json")
    assert list(about["requirements"]) == ["sparsebert"]
    AdaptRun.read({"model": str(tmp_path / "found"), **given}).make(tmp_path / "adapted")
    assert opened_as_encoded(tmp_path / "adapted" / "model", 40).pattern == model.pattern


def test_pretrain_gives_such_a_folder_back(docs_corpus: Path, sentences: Path, tmp_path: Path) -> None:
    PretrainRun.read({"model": str(sentences), "corpus": docs_corpus, "steps": 1, "pattern": "star", **SMALL}).make(
        tmp_path
    )
    assert opened_as_encoded(tmp_path / "model", 40).pattern.sparsity > 0.5


def test_max_seq_length_ends_with_explicit_entries_and_grows_with_positions(
    docs_corpus: Path, sentences: Path, tmp_path: Path
) -> None:
    given = {"model": str(sentences), "corpus": docs_corpus, "steps": 1, **SMALL}
    SearchRun.read({**given, "kind": "unstructured", "sparsity": 0.7}).make(tmp_path / "explicit")
    opened_as_encoded(tmp_path / "explicit" / "model", 24)
    assert read_json(tmp_path / "explicit" / "model" / "tokenizer_config.json")["model_max_length"] == 24
    AdaptRun.read({**given, "length": 64, "pattern": "star"}).make(tmp_path / "long")
    opened_as_encoded(tmp_path / "long" / "model", 64)


def test_a_model_with_a_task_head_is_no_such_folder(builtin_data: Path, sentences: Path, tmp_path: Path) -> None:
    sizes: dict[str, Any] = {"max_rows": 8, "length": 24, "pattern": "star"}
    FinetuneRun("rte", str(builtin_data), str(sentences), **sizes).make(tmp_path)
    assert not (tmp_path / "model" / "modules.json").exists()
