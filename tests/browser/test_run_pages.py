"""What a reader does with the page of a run, done in Chromium."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sparsebert.importance.saved import load_importance
from sparsebert.patterns import Pattern
from sparsebert.report.run_pages.writing import (
    write_adapt_page,
    write_comparison_page,
    write_importance_page,
    write_search_page,
)
from tests.browser.test_page import Watched, near_explorer
from tests.report.run_pages.folders import COMPARISON, HEADS, LENGTH, write_importance, write_search

if TYPE_CHECKING:
    from playwright.sync_api import Browser

EVIL = '<img src=x onerror="window.harm=1">'


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    write_importance(folder / "importance", EVIL)
    write_search(folder / "search", EVIL)
    write_search(folder / "adapt", EVIL)
    return {
        "importance": write_importance_page(folder / "importance"),
        "search": write_search_page(folder / "search"),
        "adapt": write_adapt_page(folder / "adapt"),
        "compare": write_comparison_page(folder / "compared.html", EVIL, "sparse", COMPARISON, None),
    }


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", ["importance", "search", "adapt", "compare"])
def test_a_page_of_a_run_fits_a_telephone_and_nothing_goes_wrong(
    browser: "Browser", pages: dict[str, Path], kind: str, scheme: str
) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 844}, color_scheme=scheme)  # type: ignore[arg-type]
    watched = Watched(page, pages[kind])
    if kind != "compare":
        near_explorer(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert watched.troubles == []
    assert [url for url in watched.requests if not url.startswith("data:")] == [watched.address]
    assert page.evaluate("window.harm") is None
    page.close()


def test_an_entry_of_the_heat_map_tells_its_value(browser: "Browser", pages: dict[str, Path]) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    watched = Watched(page, pages["importance"])
    near_explorer(page)
    assert page.locator("#x-values").is_checked()
    page.locator("#x-source").select_option(label="Learned P, head by head")
    page.locator("#x-head").select_option("2")
    box = page.locator("#x-canvas").bounding_box()
    assert box is not None
    cell = box["width"] / LENGTH
    page.locator("#x-canvas").hover(position={"x": 7.5 * cell, "y": 4.5 * cell})
    value = load_importance(pages["importance"].parent)[2, 4, 7]
    assert page.locator("#x-entry").inner_text().startswith("query 4 → key 7, offset +3")
    assert f"value {value:.4f}" in page.locator("#x-entry").inner_text()
    assert page.locator("#x-profile-said").inner_text().startswith("Mean value at each distance")
    page.locator("#x-values").uncheck()
    assert page.locator("#x-profile-said").inner_text().startswith("Share kept at each distance")
    assert watched.troubles == []
    page.close()


def test_every_head_of_every_layer_can_be_looked_at(browser: "Browser", pages: dict[str, Path]) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    watched = Watched(page, pages["search"])
    near_explorer(page)
    pattern = Pattern.load(pages["search"].parent / "pattern.safetensors")
    page.locator("#x-layer").select_option("2")
    page.locator("#x-head").select_option("1")
    assert page.locator("#x-kept").inner_text() == f"{len(pattern.entries(1, 2))} of {LENGTH**2}"
    assert page.locator("#x-all").inner_text() == f"{100 * pattern.sparsity:.2f} %"
    page.locator("#x-heads button").nth(1 * HEADS + 3).click()
    assert page.locator("#x-kept").inner_text() == f"{len(pattern.entries(3, 1))} of {LENGTH**2}"
    assert [page.locator(f"#x-{which}").input_value() for which in ("layer", "head")] == ["1", "3"]
    assert page.locator("#x-heads button[aria-pressed=true]").get_attribute("aria-label") == "layer 2, head 4"
    assert page.locator("#x-keys").inner_text() == f"{len(pattern.entries(3, 1)) / LENGTH:.1f}"
    assert watched.troubles == []
    page.close()
