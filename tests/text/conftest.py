"""A tiny model folder and small corpora, written for each test."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from sparsebert.text import SPECIAL_TOKENS, TokenStore, prepare_corpus

LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
WORDS = ["the", "cat", "sat", "on", "a", "mat", "dog", "ran", "far", "##s", "##ing"]
PLAIN = b"Cats\nThe cat sat. The cat ran far.\n\nDogs\nA dog sat on the mat. It ran.\n"


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Single characters and a few words, so that every ASCII word has tokens."""
    folder = tmp_path_factory.mktemp("model")
    pieces = [*LETTERS, *(f"##{letter}" for letter in LETTERS), *".,!?:;'\"()[]#-_"]
    tokens = dict.fromkeys([*SPECIAL_TOKENS, *pieces, *WORDS])
    (folder / "vocab.txt").write_text("\n".join(tokens) + "\n")
    return str(folder)


Prepare = Callable[..., TokenStore]


def documents(store: TokenStore) -> Iterator[list[np.ndarray]]:
    """Every document as the ids of its sentences, in the order of the text."""
    for number in range(len(store.shards)):
        shard = store.shard(number).shard
        for start, stop in zip(shard.documents[:-1], shard.documents[1:], strict=True):
            yield [shard.sentence(sentence) for sentence in range(start, stop)]


@pytest.fixture
def prepare(tmp_path: Path, model_folder: str) -> Prepare:
    """prepare({"a.txt": b"..."}) writes the files and makes a store of them in `corpus`."""

    def run(contents: dict[str, bytes], out: str = "corpus", **settings: object) -> TokenStore:
        for name, data in contents.items():
            (tmp_path / name).write_bytes(data)
        settings = {"model": model_folder, "workers": 1, **settings}
        return prepare_corpus([str(tmp_path / name) for name in contents], tmp_path / out, **settings)  # type: ignore[arg-type]

    return run


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below a folder with its bytes."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
