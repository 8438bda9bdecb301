"""What an installed wheel must do, this checkout does too."""

import subprocess
import sys
from pathlib import Path

import pytest

from sparsebert.attention import sparse_library

PROJECT = Path(__file__).resolve().parents[2]
CHECKS = ("the_kernel_agrees_with_the_oracle", "openmp_is_the_copy_of_torch", "a_pattern_comes_back_from_its_file")


@pytest.mark.long
@pytest.mark.parametrize("check", CHECKS)
def test_the_checks_of_a_wheel_hold_here(check: str) -> None:
    if not sparse_library.is_built():
        pytest.skip("the C++ kernel was not built: no C++ compiler")
    # A process of its own: other tests may have loaded another OpenMP runtime into this one.
    run = f"import sys; sys.path.insert(0, 'release'); import smoke; print(smoke.{check}())"
    done = subprocess.run([sys.executable, "-c", run], cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
