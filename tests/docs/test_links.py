"""Links of the README and the docs lead somewhere."""

from pathlib import Path

import pytest

from tests.docs.pages import PAGES, links, name_of


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_leads_to_a_file(page: Path) -> None:
    assert [target for target in links(page) if not (page.parent / target).exists()] == []
