"""Links of the README and the docs lead somewhere, and files that they name exist."""

import re
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, PROJECT, code_in_lines, links, name_of


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_leads_to_a_file(page: Path) -> None:
    assert [target for target in links(page) if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_file_of_the_project_that_a_page_names_is_there(page: Path) -> None:
    """Below the project, or, for short, below src/sparsebert."""
    named = [span for span in code_in_lines(page) if re.fullmatch(r"[a-z_]+(/[\w.-]+)+\.(py|cpp|h|sh)", span)]
    roots = (PROJECT, PROJECT / "src" / "sparsebert")
    assert [path for path in named if not any((root / path).exists() for root in roots)] == []
