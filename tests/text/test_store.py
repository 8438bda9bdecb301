"""A store opens at once, is checked where it is touched, and never hands out what was not written."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from sparsebert.errors import CorpusError, SparseBertError
from sparsebert.files import seal_tensors, sha256
from sparsebert.text import Shard, TokenStore, load_tokenizer, store, vocabulary_hash
from sparsebert.text.shards import shard_from_tensors
from sparsebert.text.store import write_manifest
from tests.text.conftest import PLAIN, Prepare, documents


def _decoded(corpus: TokenStore) -> list[list[str]]:
    tokens = corpus.tokens()
    return [[" ".join(tokens[number] for number in sentence) for sentence in one] for one in documents(corpus)]


def test_documents_and_sentences_come_back_as_they_were_written(prepare: Prepare) -> None:
    assert _decoded(prepare({"a.txt": b"Cats\nThe cat sat. The dogs ran.\n\nA mat\nA dog sat.\n"})) == [
        ["cat ##s", "the cat sat .", "the dog ##s ran ."],
        ["a mat", "a dog sat ."],
    ]


def test_special_tokens_written_in_a_text_are_text(prepare: Prepare) -> None:
    corpus = prepare({"a.txt": b"Cats\nThe [SEP] cat [MASK] sat.\n"})
    assert _decoded(corpus)[0][1] == "the [ s ##e ##p ] cat [ m ##a ##s ##k ] sat ."
    assert not set(corpus.special.all()) & set(np.concatenate(next(iter(documents(corpus)))).tolist())


def test_another_vocabulary_is_refused_by_name(prepare: Prepare, model_folder: str) -> None:
    corpus = prepare({"a.txt": PLAIN})
    corpus.require_vocabulary(vocabulary_hash(load_tokenizer(model_folder)))
    with pytest.raises(
        CorpusError, match=rf"vocabulary of {Path(model_folder).name} .* but bert-large has another one"
    ):
        corpus.require_vocabulary("0" * 64, "bert-large")


def test_opening_reads_the_manifest_only(prepare: Prepare, tmp_path: Path) -> None:
    prepare({"a.txt": PLAIN})
    (tmp_path / "corpus" / "shards" / "00000.safetensors").unlink()
    corpus = TokenStore.open(tmp_path / "corpus")
    with pytest.raises(CorpusError, match=r"00000\.safetensors"):
        corpus.shard(0)


def test_every_flipped_bit_is_noticed_at_the_first_touch(prepare: Prepare, tmp_path: Path) -> None:
    prepare({"a.txt": PLAIN})
    for path in sorted((tmp_path / "corpus").rglob("*.*")):
        data = path.read_bytes()
        for position in range(0, len(data), max(1, len(data) // 40)):
            path.write_bytes(data[:position] + bytes([data[position] ^ 4]) + data[position + 1 :])
            with pytest.raises(SparseBertError):
                TokenStore.open(tmp_path / "corpus").verify()
        path.write_bytes(data)
    TokenStore.open(tmp_path / "corpus").verify()


@pytest.mark.parametrize("lie", ["tokens", "documents", "held_out_tokens"])
def test_a_manifest_that_lies_about_a_shard_is_refused(prepare: Prepare, tmp_path: Path, lie: str) -> None:
    prepare({"a.txt": PLAIN})
    manifest = json.loads((tmp_path / "corpus" / "manifest.json").read_text())
    del manifest["sha256"]
    manifest["shards"][0][lie] += 1
    write_manifest(tmp_path / "corpus", manifest)
    with pytest.raises(CorpusError, match="other counts than the manifest"):
        TokenStore.open(tmp_path / "corpus").shard(0)


@pytest.mark.parametrize("missing", ["vocabulary", "shards", "split", "tokenizer_sha256"])
def test_a_manifest_without_a_part_is_refused(prepare: Prepare, tmp_path: Path, missing: str) -> None:
    prepare({"a.txt": PLAIN})
    manifest = json.loads((tmp_path / "corpus" / "manifest.json").read_text())
    del manifest["sha256"], manifest[missing]
    write_manifest(tmp_path / "corpus", manifest)
    with pytest.raises(CorpusError, match="lacks something"):
        TokenStore.open(tmp_path / "corpus")


@pytest.mark.parametrize(
    ("key", "value"), [("tokens", -1), ("documents", 1.5), ("held_out_documents", 99), ("sha256", 3)]
)
def test_a_manifest_with_impossible_counts_is_refused(
    prepare: Prepare, tmp_path: Path, key: str, value: object
) -> None:
    prepare({"a.txt": PLAIN})
    manifest = json.loads((tmp_path / "corpus" / "manifest.json").read_text())
    del manifest["sha256"]
    manifest["shards"][0][key] = value
    write_manifest(tmp_path / "corpus", manifest)
    with pytest.raises(CorpusError, match="impossible counts"):
        TokenStore.open(tmp_path / "corpus")


GOOD = Shard(
    np.array([5, 6, 7], np.uint16),
    np.array([0, 1, 3], np.uint32),
    np.array([0, 2], np.uint32),
    np.array([9], np.uint64),
)


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("ids", np.array([5, 6, 10], np.uint16)),  # beyond the vocabulary
        ("ids", np.array([5, 6, 7], np.int64)),
        ("sentences", np.array([0, 1, 4], np.uint32)),  # beyond the tokens
        ("sentences", np.array([0, 3, 3], np.uint32)),  # an empty sentence
        ("sentences", np.zeros(0, np.uint32)),
        ("documents", np.array([1, 2], np.uint32)),
        ("documents", np.array([[0, 2]], np.uint32)),
        ("hashes", np.array([9, 9], np.uint64)),
        ("others", np.array([9], np.uint64)),
    ],
)
def test_an_index_that_does_not_fit_is_refused(name: str, array: np.ndarray) -> None:
    shard_from_tensors(GOOD.tensors(), 10, "good")
    with pytest.raises(CorpusError, match="bad"):
        shard_from_tensors({**GOOD.tensors(), name: array}, 10, "bad")


def test_many_shards_stay_readable_with_few_open_files(
    prepare: Prepare, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "_MAX_OPEN", 2)
    corpus = prepare({"a.txt": PLAIN})
    data = (tmp_path / "corpus" / "shards" / "00000.safetensors").read_bytes()
    for number in range(1, 5):
        (tmp_path / "corpus" / "shards" / f"{number:05d}.safetensors").write_bytes(data)
    corpus.shards = corpus.shards * 5
    expected = [len(sentences) for sentences in _decoded(corpus)]
    assert [len(sentences) for sentences in _decoded(corpus)] == expected
    assert len(corpus._open) == 2


def test_a_shard_file_that_is_no_shard_is_refused(prepare: Prepare, tmp_path: Path) -> None:
    corpus = prepare({"a.txt": PLAIN})
    path = tmp_path / "corpus" / "shards" / "00000.safetensors"
    for data in (b"", b"short", seal_tensors({"ids": np.zeros(3, np.uint16)}, {})):
        path.write_bytes(data)
        manifest = {key: value for key, value in corpus.manifest.items() if key != "sha256"}
        manifest["shards"] = [{**manifest["shards"][0], "sha256": sha256(data)}]
        write_manifest(tmp_path / "corpus", manifest)
        with pytest.raises(CorpusError, match=re.escape(path.name)):
            TokenStore.open(tmp_path / "corpus").shard(0)
