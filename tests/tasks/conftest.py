"""Small fine-tuned runs that several tests look at."""

from collections.abc import Callable
from pathlib import Path

import pytest

from sparsebert.tasks.builtin import write_builtin
from sparsebert.tasks.config import FinetuneConfig
from sparsebert.tasks.finetune import finetune


@pytest.fixture(scope="session")
def builtin_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built-in files of all eleven tasks."""
    return write_builtin(tmp_path_factory.mktemp("builtin"))


@pytest.fixture(scope="session")
def tiny_run(builtin_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A run of a task with scratch:tiny under the star pattern, a few steps long; made once."""
    runs: dict[str, Path] = {}

    def run(task: str) -> Path:
        if task not in runs:
            out = tmp_path_factory.mktemp(task)
            config = FinetuneConfig(task, str(builtin_data), "scratch:tiny", learning_rate=5e-4, max_rows=64)
            finetune(config, out, pattern="star")
            runs[task] = out
        return runs[task]

    return run
