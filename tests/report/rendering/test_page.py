"""The page: complete in itself, everything in it, and nothing that came from outside as code."""

import json
import re
from base64 import b64decode
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from jinja2 import UndefinedError

from sparsebert.patterns import from_keep
from sparsebert.report.rendering.document import embedded, environment, policy
from sparsebert.report.rendering.explorer import explorer_data, pack_pattern, pack_values
from sparsebert.report.rendering.page import relative_link
from sparsebert.report.writing import write_report
from sparsebert.studies.results import load_study
from tests.report.synthetic import World, write_study

EVIL = "</script><script>alert(1)</script>\"'><img src=x onerror=alert(2)>&amp;{{data}}|=1+1"


class Outline(HTMLParser):
    """Tags, their attributes, and the text of the page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def outline(path: Path) -> Outline:
    found = Outline()
    found.feed(path.read_text())
    return found


@pytest.fixture(scope="module")
def page(folder: Path) -> Path:
    write_report(folder, folder / "report.html")
    return folder / "report.html"


@pytest.fixture(scope="module")
def evil(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("evil")
    write_study(World(prefix=EVIL, scale="smoke", seeds=1, tasks=("rte", "qnli")), folder / "study")
    write_report(folder / "study", folder / "report.html")
    write_report(folder / "study", folder / "report.md", form="md")
    return folder / "report.html"


def test_the_page_fetches_nothing(page: Path) -> None:
    for name, attributes in outline(page).tags:
        for attribute in ("src", "href", "srcset", "action", "xlink:href", "poster"):
            value = attributes.get(attribute)
            if value is not None:
                assert value.startswith(("data:", "#", "./")), (name, value)
        assert name not in ("iframe", "object", "embed", "base", "form")
        assert "style" not in attributes
        assert not [attribute for attribute in attributes if attribute.startswith("on")]
    assert "@import" not in page.read_text()
    assert "url(" not in page.read_text()


def test_the_policy_names_this_very_style_and_script(page: Path) -> None:
    text = page.read_text()
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)
    script = re.search(r"<script>(.*?)</script>", text, re.DOTALL)
    assert style is not None
    assert script is not None
    given = next(a["content"] for name, a in outline(page).tags if a.get("http-equiv") == "Content-Security-Policy")
    assert given == policy(style[1], script[1])
    assert given.startswith("default-src 'none'")
    assert "unsafe" not in given


def test_every_number_leads_to_its_run_folder(page: Path) -> None:
    links = [attributes for name, attributes in outline(page).tags if name == "a" and "data-runs" in attributes]
    assert len(links) > 500
    for attributes in links:
        assert (page.parent / str(attributes["href"])).is_dir()


def test_links_follow_the_page_to_another_folder(evil: Path, tmp_path: Path) -> None:
    out = tmp_path / "elsewhere" / "page.html"
    write_report(evil.parent / "study", out)
    links = [str(a["href"]) for name, a in outline(out).tags if name == "a" and "data-runs" in a]
    assert links
    assert all((out.parent / link).is_dir() for link in links)


def test_the_page_is_small(page: Path) -> None:
    assert page.stat().st_size < 8 * 2**20


def test_text_from_outside_stays_text(evil: Path) -> None:
    found = outline(evil)
    assert [name for name, attributes in found.tags].count("script") == 3
    assert not [a for name, a in found.tags if name == "img" and not str(a.get("src")).startswith("data:")]
    assert any(EVIL in text for text in found.text)


def test_smoke_says_that_it_is_not_evidence(evil: Path) -> None:
    words = "".join(outline(evil).text)
    assert "Not evidence." in words
    assert "15not enough evidence" in words


def test_markdown_escapes_what_it_is_given(evil: Path) -> None:
    text = evil.with_suffix(".md").read_text()
    assert "<script>" not in text
    assert "## Findings" in text
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]*)\)", text)
    assert pictures
    assert all((evil.parent / picture).is_file() for picture in pictures)
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert rows
    assert all(line.endswith("|") for line in rows)


def test_markdown_names_the_tables_that_no_run_bears_on_in_one_line(evil: Path) -> None:
    text = evil.with_suffix(".md").read_text()
    assert "### GLUE with and without the diagonal" in text
    assert "### SWAG and SQuAD" not in text
    left_out = next(line for line in text.splitlines() if line.startswith("Left out"))
    assert left_out.endswith("bears on them: SWAG and SQuAD with and without the diagonal.")


def test_equal_studies_give_equal_pages(evil: Path) -> None:
    before = evil.read_bytes()
    write_report(evil.parent / "study", evil)
    assert evil.read_bytes() == before


def test_embedded_json_cannot_end_its_element() -> None:
    text = embedded({"a": "</script><!--&"})
    assert not set("<>&") & set(text)
    assert json.loads(text) == {"a": "</script><!--&"}


def test_templates_escape_text_and_refuse_names_that_do_not_exist() -> None:
    templates = environment(lambda runs: None)
    filled = templates.from_string('<b class="{{ one }}">{{ two }}</b>').render(one='"x"', two="<{{ one }}>")
    assert filled == '<b class="&#34;x&#34;">&lt;{{ one }}&gt;</b>'
    with pytest.raises(UndefinedError, match="three"):
        templates.from_string("{{ three }}").render()


def test_links_are_never_schemes(tmp_path: Path) -> None:
    assert relative_link(tmp_path / "javascript:alert(1)", tmp_path / "page.html") == "./javascript%3Aalert%281%29/"
    assert relative_link(tmp_path / "a b", tmp_path / "x" / "page.html") == "./../a%20b/"


def test_packed_values_come_back_within_a_step() -> None:
    random = np.random.default_rng(0)
    values = random.random((2, 6, 6))
    symmetric = (values + values.transpose(0, 2, 1)) / 2
    for given, halved in ((values, False), (symmetric, True)):
        source = pack_values("x", given)
        assert source["halved"] is halved
        levels = np.frombuffer(b64decode(source["packed"]), "<u2").reshape(2, -1) / 65535
        found = source["low"] + levels * (source["high"] - source["low"])
        expected = given[:, *np.triu_indices(6)] if halved else given.reshape(2, -1)
        assert np.abs(found - expected).max() < 1e-4


def test_packed_patterns_come_back() -> None:
    keep = np.random.default_rng(0).random((2, 5, 5)) > 0.5
    bits = np.frombuffer(b64decode(pack_pattern("x", from_keep(keep))["packed"]), np.uint8).reshape(2, -1)
    assert (np.unpackbits(bits, axis=1, bitorder="little")[:, :25].reshape(2, 5, 5) == keep).all()


def test_a_search_without_its_gate_still_shows_what_it_kept(tmp_path: Path) -> None:
    write_study(World(seeds=1, tasks=("rte",)), tmp_path / "study")
    study = load_study(tmp_path / "study")
    before = {source["title"]: source for source in explorer_data(study)["sources"]}
    run = next(study.finished("search", kind="unstructured"))
    (run.path / "gate.safetensors").unlink()
    source = next(one for one in explorer_data(study)["sources"] if one["run"] == run.id)
    assert (before[source["title"]]["kind"], source["kind"]) == ("values", "kept")
    assert source["packed"] == before[source["title"]]["frozen"]
