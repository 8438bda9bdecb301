"""A small real corpus, made once, for everything that trains on text here."""

from pathlib import Path

import pytest

from sparsebert.text import prepare_corpus


@pytest.fixture(scope="session")
def docs_corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Python's documentation as tokens of a vocabulary of its own, for scratch:* models."""
    folder = tmp_path_factory.mktemp("corpus") / "docs"
    prepare_corpus(["builtin:python-docs"], folder, model="scratch:tiny", train_vocab=500, workers=1)
    return folder
