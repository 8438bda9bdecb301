"""The README tells the truth about the tree."""

import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]


def test_the_tree_in_the_readme_is_the_tree() -> None:
    checked = subprocess.run([sys.executable, str(PROJECT / "docs" / "tree.py"), "--check"], check=False)
    assert checked.returncode == 0, "the README's tree is out of date: run `make docs`"


def test_every_source_file_says_what_it_is() -> None:
    silent = [
        str(path.relative_to(PROJECT))
        for path in (PROJECT / "src").rglob("*.py")
        if path.stat().st_size and not path.read_text().lstrip().startswith('"""')
    ]
    assert silent == []
