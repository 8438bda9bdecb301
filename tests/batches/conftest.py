"""One small store of the built-in text, and one written by hand."""

from pathlib import Path

import numpy as np
import pytest

from sparsebert.files import seal_tensors, sha256, write_atomic
from sparsebert.text import Shard, TokenStore, prepare_corpus
from sparsebert.text.store import FORMAT, VERSION, shard_path, write_manifest


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> TokenStore:
    out = tmp_path_factory.mktemp("corpus") / "corpus"
    return prepare_corpus(["builtin:python-docs"], out, model="scratch:tiny", train_vocab=1000)


def handmade_store(folder: Path, documents: list[list[list[int]]], hashes: list[int] | None = None) -> TokenStore:
    """A store with exactly these documents of sentences of ids, in two shards; ids 0 to 4 are the special ones."""
    hashes = hashes or [2**63 + number for number in range(len(documents))]
    half = len(documents) // 2
    entries = []
    for number, part in enumerate((slice(0, half), slice(half, None))):
        shard = _shard(documents[part], hashes[part])
        data = seal_tensors(shard.tensors(), {})
        write_atomic(shard_path(folder, number), data)
        entries.append({"sha256": sha256(data), **shard.counts(0.25)})
    special = {"pad": 0, "unk": 1, "cls": 2, "sep": 3, "mask": 4}
    content = {
        "format": FORMAT,
        "version": VERSION,
        "shards": entries,
        "skipped": {},
        "split": {"held_out": 0.25, "seed": 0},
        "tokenizer_sha256": "",
        "vocabulary": {"sha256": "", "size": 1000, "special": special},
    }
    write_manifest(folder, content)
    return TokenStore.open(folder)


def _shard(documents: list[list[list[int]]], hashes: list[int]) -> Shard:
    sentences = [sentence for document in documents for sentence in document]
    return Shard(
        np.array([token for sentence in sentences for token in sentence], np.uint16),
        np.cumsum([0, *map(len, sentences)]).astype(np.uint32),
        np.cumsum([0, *map(len, documents)]).astype(np.uint32),
        np.array(hashes, np.uint64),
    )
