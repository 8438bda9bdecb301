"""The table of families is what its script makes of them."""

import subprocess
import sys

import pytest

from tests.docs.pages import PROJECT


@pytest.mark.long
def test_the_table_of_families_is_up_to_date() -> None:
    command = [sys.executable, "-W", "ignore", str(PROJECT / "docs" / "families.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
