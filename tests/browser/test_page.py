"""What a reader does with the page, done in Chromium."""

import csv
import io
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sparsebert.patterns import Pattern
from sparsebert.studies.results import load_study

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


class Watched:
    """A page, and what went wrong on it."""

    def __init__(self, page: "Page", report: Path) -> None:
        self.page, self.troubles, self.requests = page, [], []  # type: ignore[var-annotated]
        page.on("console", lambda message: self.troubles.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.troubles.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))
        self.address = report.as_uri()
        page.goto(self.address)


@pytest.fixture
def watched(browser: "Browser", report: Path) -> Iterator[Watched]:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    yield Watched(page, report)
    page.close()


def near_explorer(page: "Page") -> None:
    page.locator("#explorer").scroll_into_view_if_needed()
    page.locator("#x-canvas[data-kept]").wait_for()


def test_nothing_goes_wrong_and_nothing_is_fetched(watched: Watched) -> None:
    near_explorer(watched.page)
    watched.page.locator("#runs summary").click()
    assert watched.troubles == []
    assert [url for url in watched.requests if not url.startswith("data:")] == [watched.address]
    assert watched.page.evaluate("window.harm") is None


def test_a_script_that_slipped_in_would_not_run(watched: Watched) -> None:
    watched.page.evaluate(
        "document.body.append(Object.assign(document.createElement('script'), {textContent: 'window.harm = 2'}))"
    )
    assert watched.page.evaluate("window.harm") is None
    assert any("Content Security Policy" in trouble for trouble in watched.troubles)


def test_it_opens_in_time(browser: "Browser", report: Path) -> None:
    """Under 3 s on a quiet machine; a loaded one gets four times as long."""
    page = browser.new_page()
    start = time.monotonic()
    page.goto(report.as_uri())
    page.locator("h1").wait_for()
    assert time.monotonic() - start < 12
    page.close()


def test_tables_sort_both_ways_within_their_groups(watched: Watched) -> None:
    page = watched.page
    heading = page.locator("#table-patterns thead button", has_text="Sparsity")

    def column() -> list[float]:
        values = "rows => rows.map(row => Number(row.children[1].dataset.value))"
        return list(page.locator("#table-patterns tbody:first-of-type tr:not(.group)").evaluate_all(values))

    heading.click()
    assert column() == sorted(column())
    assert page.locator("#table-patterns thead th").nth(1).get_attribute("aria-sort") == "ascending"
    heading.click()
    assert column() == sorted(column(), reverse=True)
    assert page.locator("#table-patterns tbody:first-of-type tr").first.inner_text() == "Hand-made"


def test_a_table_downloads_as_csv(watched: Watched) -> None:
    with watched.page.expect_download() as waiting:
        watched.page.locator("button.csv[data-name=glue]").click()
    assert waiting.value.suggested_filename == "glue.csv"
    rows = list(csv.reader(io.StringIO(Path(waiting.value.path()).read_text(encoding="utf-8-sig"))))
    assert rows[0][:4] == ["Group", "Model", "MNLI-m", "MNLI-m (paper)"]
    assert rows[1][1] == "BERT, dense"
    assert float(rows[1][3]) == 85.4
    assert all(len(row) == len(rows[0]) for row in rows)
    assert watched.troubles == []


def test_a_name_cannot_become_a_formula(watched: Watched) -> None:
    page = watched.page
    page.evaluate("document.querySelector('#table-glue tbody th[scope=row]').dataset.value = '=1+1'")
    with page.expect_download() as waiting:
        page.locator("button.csv[data-name=glue]").click()
    assert "'=1+1" in Path(waiting.value.path()).read_text(encoding="utf-8-sig")


def test_the_slider_changes_the_pattern_and_its_sparsity(watched: Watched) -> None:
    page = watched.page
    near_explorer(page)
    slider = page.locator("#x-range")
    slider.fill("500")
    assert page.locator("#x-sparsity").inner_text() == "50.00 %"
    before = page.locator("#x-canvas").screenshot()
    slider.fill("950")
    kept = round(0.05 * 48 * 48)
    assert page.locator("#x-kept").inner_text() == f"{kept} of 2,304"
    assert page.locator("#x-canvas").screenshot() != before


def test_the_threshold_keeps_what_lies_above_it(watched: Watched) -> None:
    page = watched.page
    near_explorer(page)
    page.locator("input[name=x-mode][value=threshold]").check()
    page.locator("#x-range").fill("0")
    assert page.locator("#x-sparsity").inner_text().startswith("0.0")
    page.locator("#x-range").fill("1000")
    assert page.locator("#x-sparsity").inner_text() == "100.00 %"


def test_an_entry_tells_what_it_is(watched: Watched) -> None:
    page = watched.page
    near_explorer(page)
    box = page.locator("#x-canvas").bounding_box()
    assert box is not None
    cell = box["width"] / 48
    page.locator("#x-canvas").hover(position={"x": 11.5 * cell, "y": 10.5 * cell})
    words = page.locator("#x-entry").inner_text()
    assert "query 10" in words
    assert "key 11" in words
    assert "offset +1" in words
    page.locator("#x-canvas").focus()
    page.keyboard.press("ArrowLeft")
    assert "the diagonal" in page.locator("#x-entry").inner_text()


def test_heads_and_sources_can_be_chosen(watched: Watched) -> None:
    page = watched.page
    near_explorer(page)
    first = page.locator("#x-canvas").screenshot()
    page.locator("#x-head").select_option("3")
    assert page.locator("#x-canvas").screenshot() != first
    page.locator("#x-source").select_option(label="Star")
    assert page.locator("#x-head").is_disabled()
    assert page.locator("#x-range").is_disabled()
    assert page.locator("#x-kept").inner_text() == f"{5 * 48 - 6} of 2,304"


def test_a_search_shows_the_pattern_that_was_frozen(watched: Watched, report: Path) -> None:
    page = watched.page
    near_explorer(page)
    run = next(load_study(report.parent).finished("search", kind="structured"))
    pattern = Pattern.load(run.path / "pattern.safetensors")
    page.locator("#x-source").select_option(label=run.label)
    for head in (0, 4):
        page.locator("#x-head").select_option(str(head))
        assert page.locator("#x-kept").inner_text() == f"{len(pattern.entries(head))} of 2,304"
    assert page.locator("#x-all").inner_text() == f"{100 * pattern.sparsity:.2f} %"
    page.locator("#x-range").fill("100")
    assert page.locator("#x-sparsity").inner_text() == "9.98 %"
    page.locator("#x-frozen").click()
    assert page.locator("#x-range-said").inner_text() == "as it was frozen"
    assert watched.troubles == []


def test_a_search_without_its_gate_shows_every_head_of_its_pattern(watched: Watched, report: Path) -> None:
    page = watched.page
    near_explorer(page)
    page.locator("#x-values").check()
    run = next(load_study(report.parent).finished("search", kind="unstructured", penalty=0.1))
    pattern = Pattern.load(run.path / "pattern.safetensors")
    page.locator("#x-source").select_option(label=run.label)
    page.locator("#x-head").select_option("2")
    assert page.locator("#x-kept").inner_text() == f"{len(pattern.entries(2))} of 2,304"
    assert page.locator("#x-range").is_disabled()
    assert page.locator("#x-range-said").inner_text() == "as it was frozen; the values were not kept"
    assert page.locator("#x-note").inner_text().startswith("48 positions, 6 heads.")
    assert watched.troubles == []


def test_a_mean_shows_the_runs_behind_it(watched: Watched) -> None:
    page = watched.page
    page.locator("#table-glue tbody a.ours").first.click()
    card = page.locator("#run-card")
    assert card.is_visible()
    assert card.locator("li").count() == 3
    assert str(card.locator("a").first.get_attribute("href")).startswith("./runs/")
    page.keyboard.press("Escape")
    assert not card.is_visible()
    assert page.url.startswith(watched.address)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_fits_its_window(browser: "Browser", report: Path, width: int, scheme: str) -> None:
    page = browser.new_page(viewport={"width": width, "height": 844}, color_scheme=scheme)  # type: ignore[arg-type]
    page.goto(report.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    ink, paper = (page.evaluate(f"getComputedStyle(document.body).{name}") for name in ("color", "backgroundColor"))
    brightness = [sum(int(part) for part in colour[4:-1].split(",")) for colour in (ink, paper)]
    assert (brightness[0] > brightness[1]) == (scheme == "dark")
    page.close()


def test_it_prints(watched: Watched) -> None:
    page = watched.page
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not page.locator("nav").is_visible()
    assert len(page.pdf()) > 10_000
