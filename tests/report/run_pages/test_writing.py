"""Pages of runs: complete in themselves, with the figures of the run, and nothing that came from outside as code."""

import json
import re
from base64 import b64decode
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sparsebert import patterns
from sparsebert.importance.categories import tabulate
from sparsebert.importance.saved import load_importance
from sparsebert.report.rendering.document import policy
from sparsebert.report.rendering.figures.shapes import Chart, Point
from sparsebert.report.run_pages.path import path_section
from sparsebert.report.run_pages.sections import Section
from sparsebert.report.run_pages.writing import (
    write_adapt_page,
    write_comparison_page,
    write_importance_page,
    write_search_page,
)
from tests.report.rendering.test_page import EVIL, outline
from tests.report.run_pages.folders import COMPARISON, HEADS, LAYERS, LENGTH, write_importance, write_search


def explored(page: Path) -> list[dict[str, Any]]:
    found = re.search(r'id="explorer-data">(.*?)</script>', page.read_text())
    assert found is not None
    return list(json.loads(found[1])["sources"])


def words(page: Path) -> str:
    return "".join(outline(page).text)


@pytest.mark.parametrize("kind", ["importance", "search", "adapt", "compare"])
def test_a_page_fetches_nothing_and_keeps_text_as_text(tmp_path: Path, kind: str) -> None:
    run = tmp_path / "run"
    if kind == "importance":
        write_importance(run, EVIL)
        page = write_importance_page(run)
    else:
        pattern = write_search(run, EVIL)
        page = {
            "search": lambda: write_search_page(run),
            "adapt": lambda: write_adapt_page(run),
            "compare": lambda: write_comparison_page(tmp_path / "c.html", EVIL, "b", COMPARISON, pattern),
        }[kind]()
    for _, attributes in outline(page).tags:
        links = [attributes[name] for name in ("src", "href") if name in attributes]
        assert all(str(link).startswith(("data:", "#")) for link in links)
        assert not [name for name in attributes if name.startswith("on") or name == "style"]
    assert EVIL in words(page)
    text = page.read_text()
    style, script = (re.search(f"<{tag}>(.*?)</{tag}>", text, re.DOTALL) for tag in ("style", "script"))
    assert style is not None
    assert script is not None
    assert any(attributes.get("content") == policy(style[1], script[1]) for _, attributes in outline(page).tags)


def test_an_importance_page_has_the_table_of_the_run_and_every_entry(tmp_path: Path) -> None:
    write_importance(tmp_path)
    page = write_importance_page(tmp_path, seed=7)
    table = tabulate(load_importance(tmp_path), 7)
    assert table.verdict() in words(page)
    for row in table.rows:
        assert f'data-value="{row.mean:.6g}"' in page.read_text()
    mean, heads = explored(page)
    assert (mean["heads"], heads["heads"], heads["n"]) == (1, HEADS, LENGTH)
    assert heads["halved"]  # an entry and its mirror image share one value
    levels = np.frombuffer(b64decode(heads["packed"]), "<u2").reshape(HEADS, -1) / 65535
    values = heads["low"] + levels * (heads["high"] - heads["low"])
    np.testing.assert_allclose(values, load_importance(tmp_path)[:, *np.triu_indices(LENGTH)], atol=1e-4)


def test_a_search_page_shows_layers_and_heads_and_what_they_cost(tmp_path: Path) -> None:
    pattern = write_search(tmp_path)
    page = write_search_page(tmp_path)
    (source,) = explored(page)
    assert (source["layers"], source["heads"]) == (LAYERS, HEADS)
    bits = np.frombuffer(b64decode(source["frozen"]), np.uint8).reshape(LAYERS * HEADS, -1)
    kept = np.unpackbits(bits, axis=1, bitorder="little")[:, : LENGTH**2].reshape(LAYERS, HEADS, LENGTH, LENGTH)
    assert (kept == pattern.keep().numpy()).all()
    said = words(page)
    assert "0.9713cosine of embeddings" in said
    assert f"{pattern.keys_per_query:.1f}keys a query, of {LENGTH}" in said
    text = page.read_text()
    for figure in (len(pattern.entries(2, 1)) / LENGTH, 0.0456, 0.9655, 1 - 0.007):
        assert f'data-value="{figure:.6g}"' in text


def test_a_step_whose_figures_were_not_finite_is_left_out_of_the_path(tmp_path: Path) -> None:
    write_search(tmp_path)
    whole = path_section(tmp_path)
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    lines[0]["hidden_error"] = None
    (tmp_path / "metrics.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    before, after = (_points(section, "error of hidden states") for section in (whole, path_section(tmp_path)))
    assert after == before[1:]
    write_search_page(tmp_path)


def _points(section: Section, name: str) -> tuple[Point, ...]:
    (chart,) = section.parts
    assert isinstance(chart, Chart)
    return next(panel.series[0].points for panel in chart.panels if panel.series[0].name == name)


def test_a_search_without_a_teacher_tells_its_score_instead(tmp_path: Path) -> None:
    write_search(tmp_path, compared=False)
    said = words(write_search_page(tmp_path))
    assert "0.0287held-out mlm loss" in said
    assert "What it cost" not in said


def test_an_adapted_model_shows_its_pattern_as_it_runs(tmp_path: Path) -> None:
    pattern = write_search(tmp_path)
    (source,) = explored(write_adapt_page(tmp_path))
    assert (source["kind"], source["said"]) == ("kept", "as the model runs it")
    assert source["layers"] == pattern.layers


def test_the_same_run_gives_the_same_page(tmp_path: Path) -> None:
    write_search(tmp_path)
    before = write_search_page(tmp_path).read_bytes()
    assert write_search_page(tmp_path).read_bytes() == before


def test_of_a_long_pattern_a_page_shows_the_first_positions(tmp_path: Path) -> None:
    pattern = patterns.window(length=6000, heads=2, radius=1)
    page = write_comparison_page(tmp_path / "page.html", "a", "b", COMPARISON, pattern)
    (source,) = explored(page)
    assert source["title"].endswith(f"the first {source['n']} of 6,000 positions")
    assert page.stat().st_size < 8 * 2**20
