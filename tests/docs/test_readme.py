"""The README stays short, readable in an editor, and says of speed only what was measured."""

import re

from tests.docs.pages import PROJECT

README = (PROJECT / "README.md").read_text(encoding="utf-8")
RESULTS = PROJECT / "docs" / "results"


def test_it_has_about_150_lines_and_none_that_an_editor_must_wrap() -> None:
    written = re.sub(r"<!-- (\w+): made by.*?<!-- end of \1 -->", "", README, flags=re.DOTALL)
    assert len(README.splitlines()) <= 160
    assert [line for line in written.splitlines() if len(line) > 140] == []


def test_every_speed_up_stands_in_the_results() -> None:
    measured = "".join((RESULTS / name).read_text(encoding="utf-8") for name in ("attention.md", "long-inputs.md"))
    section = README.split("## How fast")[1].split("\n## ")[0]
    told = re.findall(r"(\d+\.\d+)x", section)
    assert len(told) == 18
    # A result gives both passes of an encoder as one figure: 3.11 / 3.72x.
    assert [figure for figure in told if f"{figure}x" not in measured and f"{figure} / " not in measured] == []
