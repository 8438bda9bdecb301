"""The tables of families are what their script makes of them, and no cell of theirs says that a try failed."""

import subprocess
import sys

import pytest

from tests.docs.pages import PROJECT

ASKED = {"Bert", "Roberta", "XLMRoberta", "DistilBert", "Electra", "ModernBert", "Albert", "Camembert", "NomicBert"}


@pytest.mark.long
def test_the_tables_of_families_are_up_to_date() -> None:
    command = [sys.executable, "-W", "ignore", str(PROJECT / "docs" / "families.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_no_try_of_any_family_failed() -> None:
    page = (PROJECT / "docs" / "families.md").read_text(encoding="utf-8")
    for name in ("families", "training"):
        part = page.split(f"<!-- {name}: made by `make docs` -->\n")[1].split(f"\n<!-- end of {name} -->")[0]
        _, _, *rows = [line.strip("| ").split(" | ") for line in part.splitlines()]
        assert {row[0] for row in rows} == ASKED
        assert [row for row in rows if any(cell.startswith("NO") for cell in row)] == []
