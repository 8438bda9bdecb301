"""The site: links and lists are brought there, every builder is in the gallery, and it builds without a warning."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from sparsebert.patterns.rules import BUILDERS
from tests.docs.pages import PROJECT


def module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, PROJECT / "docs" / "site" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def moved(text: str, home: str = "README.md") -> str:
    shown: str = module("places").for_the_site(text, home, lambda path: path)
    return shown


@pytest.mark.parametrize(
    ("home", "written", "shown"),
    [
        ("README.md", "[a](docs/design.md)", "[a](design.md)"),
        ("README.md", "[a](src/sparsebert/gates/gate.py)", "[a](reference/gates.md#sparsebert.gates.gate)"),
        ("README.md", "[a](LICENSE)", "[a](files/LICENSE)"),
        ("docs/decisions/wheel.md", "[a](../design.md#files)", "[a](../design.md#files)"),
        ("docs/design.md", "[a](../README.md)", "[a](index.md)"),
        ("docs/learning.md", "[a](../examples/trainer.py)", "[a](examples/trainer.md)"),
        ("docs/gpu.md", "[a](https:x) [b](#part)", "[a](https:x) [b](#part)"),
    ],
)
def test_a_link_leads_to_where_a_file_stands_on_the_site(home: str, written: str, shown: str) -> None:
    assert moved(written, home).replace("\\[", "[") == shown


def test_lists_and_tables_after_a_paragraph_get_a_blank_line_and_code_is_left_alone() -> None:
    assert moved("If you\n- run\n- see\nand\n| a |\n|---|") == "If you\n\n- run\n- see\nand\n\n| a |\n|---|"
    assert moved("```\nIf\n- run\n```") == "```\nIf\n- run\n```"


def test_brackets_side_by_side_are_no_link() -> None:
    assert moved("[CLS] [SEP] and `[CLS] [SEP]`") == "[CLS] \\[SEP] and `[CLS] [SEP]`"


def test_the_gallery_shows_every_builder() -> None:
    page, pictures = module("gallery").gallery()
    assert sorted(pictures) == sorted(f"{name}.svg" for name in BUILDERS)
    assert [name for name in BUILDERS if f"gallery/{name}.svg" not in page] == []


@pytest.mark.long
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    for tool in ("material", "mkdocstrings", "nbclient", "ipykernel"):
        pytest.importorskip(tool, reason="needs the extra `site`")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    elsewhere = re.compile(r'(src|rel="stylesheet" href)="https?:')
    fetched = [page.name for page in tmp_path.rglob("*.html") if elsewhere.search(page.read_text(encoding="utf-8"))]
    assert fetched == []  # a page needs nothing from elsewhere
    wanted = ("index.html", "gallery.html", "results/report.html", "examples/tour.html", "reference/patterns.html")
    assert [page for page in wanted if not (tmp_path / page).is_file()] == []
