"""The README and docs/tree.md tell the truth about packages, files and findings."""

import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]


def test_what_is_generated_in_the_pages_is_up_to_date() -> None:
    checked = subprocess.run([sys.executable, str(PROJECT / "docs" / "readme.py"), "--check"], check=False)
    assert checked.returncode == 0, "the README or docs/tree.md is out of date: run `make docs`"


def test_every_source_file_says_what_it_is() -> None:
    silent = [
        str(path.relative_to(PROJECT))
        for path in (PROJECT / "src").rglob("*.py")
        if path.stat().st_size and not path.read_text().lstrip().startswith('"""')
    ]
    assert silent == []
