"""A real Chromium, where there is one."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sparsebert.report.writing import write_report
from tests.report.synthetic import World, write_study

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--proxy-server=127.0.0.1:9",  # where nobody listens: neither a page nor Chromium's own services get out
]


@pytest.fixture(scope="session")
def browser() -> Iterator["Browser"]:
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("needs the program chromium, which is not on this machine (Debian: apt-get install chromium)")
    playwright = pytest.importorskip("playwright.sync_api", reason="needs the package playwright")
    with playwright.sync_playwright() as engine:
        found = engine.chromium.launch(executable_path=program, args=ARGUMENTS)
        yield found
        found.close()


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of a whole study whose names try to be code."""
    folder = tmp_path_factory.mktemp("browser")
    world = World(
        length=48, heads=6, seeds=3, prefix='<img src=x onerror="window.harm=1">\'', tasks=("rte", "qnli", "mnli")
    )
    study = write_study(world, folder / "study")
    for run in study.finished("search", kind="unstructured", penalty=0.1):
        (run.path / "gate.safetensors").unlink()  # as a record leaves it
    write_report(folder / "study", folder / "study" / "report.html")
    return folder / "study" / "report.html"
