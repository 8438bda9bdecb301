"""Settings that every test shares: two workers on two cores, one torch thread each; repeatable examples."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("MPLBACKEND", "Agg")
# Without a GPU Triton's kernels run in its interpreter, which has to be known before anyone imports triton.
if not Path("/proc/driver/nvidia").exists():
    os.environ.setdefault("TRITON_INTERPRET", "1")

settings.register_profile(
    "repeatable",
    derandomize=True,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("repeatable")

PROJECT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The real data sets that lie beside the project on some machines; never part of it."""
    folder = PROJECT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("needs the real data sets beside the project, which are not on this machine")
    return folder


@pytest.fixture(scope="session")
def builtin_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built-in files of all eleven tasks."""
    from sparsebert.tasks.builtin import write_builtin

    return write_builtin(tmp_path_factory.mktemp("builtin"))


@pytest.fixture(scope="session")
def tiny_run(builtin_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A run of a task with scratch:tiny under the star pattern, a few steps long; made once."""
    from sparsebert.runs import FinetuneRun

    runs: dict[str, Path] = {}

    def run(task: str) -> Path:
        if task not in runs:
            runs[task] = tmp_path_factory.mktemp(task)
            sizes = {"learning_rate": 5e-4, "max_rows": 64, "pattern": "star"}
            FinetuneRun(task, str(builtin_data), "scratch:tiny", **sizes).make(runs[task])
        return runs[task]

    return run
