"""One synthetic study on disk for all tests that only read it."""

from pathlib import Path

import pytest

from sparsebert.studies.results import Study, load_study
from tests.report.synthetic import World, write_study


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole study with the paper's effects planted."""
    path = tmp_path_factory.mktemp("study") / "all"
    write_study(
        World(tasks=("mnli", "qqp", "qnli", "sst2", "cola", "stsb", "mrpc", "rte", "swag", "squad1", "squad2")), path
    )
    return path


@pytest.fixture(scope="session")
def study(folder: Path) -> Study:
    return load_study(folder)
