"""The recipes of docs/extending.md work as written, and each touches at most three files, which exist."""

import re
from pathlib import Path
from typing import Any

import pytest

from sparsebert.attention import BACKENDS
from sparsebert.gates import KINDS
from sparsebert.patterns.rules import BUILDERS
from sparsebert.report.rendering.loss_table import COLUMNS
from sparsebert.tasks import TASKS
from tests.docs.pages import PROJECT, blocks, name_of
from tests.docs.python_blocks import run
from tests.docs.stages import STAGES

PAGE = PROJECT / "docs" / "extending.md"
TABLES: tuple[dict[str, Any], ...] = (BACKENDS, BUILDERS, COLUMNS, KINDS, TASKS)
ROWS = [line.split("|")[1:3] for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| [a")]


def test_every_recipe_runs_as_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    before = [dict(table) for table in TABLES]
    try:
        run(PAGE, STAGES[name_of(PAGE)]())
        assert [len(table) - len(rows) for table, rows in zip(TABLES, before, strict=True)] == [1] * len(TABLES)
    finally:
        for table, rows in zip(TABLES, before, strict=True):
            table.clear()
            table.update(rows)


def test_there_is_a_recipe_with_code_for_each_of_the_seven() -> None:
    wanted = [re.search(r"\[an? (.+?)\]", recipe).group(1) for recipe, _ in ROWS]  # type: ignore[union-attr]
    headings = re.findall(r"^## An? (.+)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert sorted(headings) == sorted(wanted)
    assert len(wanted) == 7
    assert len([block for block in blocks(PAGE) if block.language == "python"]) == 7


@pytest.mark.parametrize("files", [files for _, files in ROWS], ids=[recipe.strip() for recipe, _ in ROWS])
def test_a_recipe_touches_at_most_three_files_that_exist(files: str) -> None:
    touched = re.findall(r"`([a-z_/]+(?:\.py)?)`", files)
    assert len(touched) <= 3
    assert [path for path in touched if not (PROJECT / "src" / "sparsebert" / path).exists()] == []
