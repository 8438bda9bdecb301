"""Every Python block of the README and the docs runs as written."""

from pathlib import Path

import pytest

from tests.docs.pages import PAGES, blocks, name_of
from tests.docs.python_blocks import run
from tests.docs.stages import STAGES

RUN_ELSEWHERE = ("docs/extending.md",)  # by test_extending.py, which puts the tables back
WITH_PYTHON = [page for page in PAGES if any(block.language == "python" for block in blocks(page))]


@pytest.mark.parametrize("page", [page for page in WITH_PYTHON if name_of(page) not in RUN_ELSEWHERE], ids=name_of)
def test_the_python_of_a_page_runs_as_written(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run(page, STAGES[name_of(page)]())


def test_a_block_says_what_language_it_is_where_that_can_be_run() -> None:
    silent = [
        f"{name_of(page)}:{block.first_line}"
        for page in PAGES
        for block in blocks(page)
        if block.language == "" and block.code.startswith(("import ", "from "))
    ]
    assert silent == []
