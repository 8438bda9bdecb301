"""What mkdocs asks while it builds the site: which pages there are, in what order, and what stands on them."""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mkdocs.structure.files import File, Files

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

from example_pages import FOLDER, notebook_page, script_page
from gallery import gallery
from packages import package_names
from places import PROJECT, ROOT_PAGES, for_the_site, place_of
from reference import reference

from sparsebert.cli import app

REPORT = "results/report.html"
# Pages in the order in which they are read; pages that are not named come after these, by their names.
FIRST: dict[str, list[str]] = {
    "Start": ["index.md", "installing.md", "examples/index.md"],
    "Guides": ["learning.md", "training.md", "tasks.md", "batches.md", "gpu.md", "studies.md", "scale.md", "theory.md"],
    "Patterns": ["gallery.md"],
    "Results": ["results/what-it-says.md", REPORT, "results/evidence.md", "results/attention.md"],
    "Reference": ["reference/index.md"],
    "Project": ["contributing.md", "design.md", "vocabulary.md", "extending.md", "paper-map.md", "tree.md"],
}
TITLES = {REPORT: "The laptop study, live", "index.md": "sparsebert", "results/evidence.md": "All tables"}


def on_files(files: Files, config: Any) -> Files:
    """Everything that is not in docs/ as it stands, and the navigation over all of it."""
    made = _made()
    for place, content in made.items():
        files.append(File.generated(config, place, content=content))
    files.append(File.generated(config, "style.css", abs_src_path=str(Path(__file__).with_name("style.css"))))
    config["nav"] = _navigation([file.src_uri for file in files.documentation_pages()] + [REPORT])
    copied: set[str] = set()
    for page in list(files.documentation_pages()):
        home = _home_of(page.src_uri)
        if home is not None:
            text = (PROJECT / home).read_text(encoding="utf-8")
            page.content_string = for_the_site(text, home, lambda path: _copied(path, copied))
    for path in sorted(copied):
        files.append(File.generated(config, place_of(path)[0], abs_src_path=str(PROJECT / path)))
    return files


def _made() -> dict[str, str | bytes]:
    """Pages and pictures that no file of docs/ holds, by their places on the site."""
    made: dict[str, str | bytes] = dict.fromkeys(ROOT_PAGES.values(), "")  # filled in beside their links
    made |= reference(package_names())
    made["gallery.md"], pictures = gallery()
    made |= {f"gallery/{name}": picture for name, picture in pictures.items()}
    made |= {f"examples/{script.stem}.md": script_page(script) for script in sorted(FOLDER.glob("*.py"))}
    made["examples/tour.md"], pictures = notebook_page()
    made |= {f"examples/{name}": picture for name, picture in pictures.items()}
    made[REPORT] = _report()
    return made


def _report() -> bytes:
    """The page of `sparsebert report` on what is recorded of the laptop study."""
    with TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        app(["report", str(PROJECT / "docs/results/runs.jsonl.zst"), "--out", str(page)], standalone_mode=False)
        return page.read_bytes()


def _home_of(place: str) -> str | None:
    """The file of the project that a page is written in; None for one that is made here."""
    homes = {page: home for home, page in ROOT_PAGES.items()}
    home = homes.get(place, f"docs/{place}")
    return home if (PROJECT / home).is_file() else None


def _copied(path: str, copied: set[str]) -> str:
    """A file that the site has no page for is copied; a folder is stood for by the tree of files."""
    if (PROJECT / path).is_dir():
        return "docs/tree.md"
    if not path.endswith((".md", ".py", ".ipynb")) and not path.startswith("docs/"):
        copied.add(path)
    return path


def _navigation(places: list[str]) -> list[Any]:
    sections = {name: list(first) for name, first in FIRST.items()}
    named = {place for first in FIRST.values() for place in first}
    decisions = []
    for place in sorted(set(places) - named):
        if place.startswith("decisions/"):
            decisions.append(place)
        else:
            sections[_section_of(place)].append(place)
    sections["Reference"][1:] = sorted(sections["Reference"][1:], key=_reading_order)
    shown: list[Any] = [{name: [_entry(place) for place in section]} for name, section in sections.items()]
    shown[-1]["Project"].append({"Decisions": decisions})
    return shown


def _section_of(place: str) -> str:
    folder = {"results/": "Results", "reference/": "Reference", "examples/": "Start"}
    home = next((name for start, name in folder.items() if place.startswith(start)), None)
    return home or ("Project" if place in ROOT_PAGES.values() else "Guides")


def _reading_order(place: str) -> int:
    order = [*package_names(), "modules"]
    return order.index(Path(place).stem)


def _entry(place: str) -> Any:
    return {TITLES[place]: place} if place in TITLES else place
