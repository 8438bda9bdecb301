"""Where a file of the project stands on the site, and links and lists of a page brought there.

Pages are written to be read in the project, where a link leads to a file. On the site a source file is a part of the
reference, an example a page, and any other file a copy.
"""

import os
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path, PurePosixPath

PROJECT = Path(__file__).resolve().parents[2]
# Pages outside docs/, each under its name on the site.
ROOT_PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "examples/README.md": "examples/index.md",
}
_LINK = re.compile(r"(?<=\]\()([^)\s#]+)(#[^)\s]*)?(?=\))")
_FENCE = re.compile(r"^(```.*?^```$)", flags=re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"(`[^`]*`)")
_BEGINS = re.compile(r"(?:[-*] |\d+\. |\|)")  # a list or a table


def place_of(path: str) -> tuple[str, str]:
    """(place on the site, part of the page) of a file or folder of the project, named from its root."""
    file = PurePosixPath(path)
    if path in ROOT_PAGES:
        return ROOT_PAGES[path], ""
    if file.parts[:2] == ("src", "sparsebert") and file.suffix == ".py":
        module = ".".join(("sparsebert", *file.parts[2:]))[: -len(".py")].removesuffix(".__init__")
        package = file.parts[2] if len(file.parts) > 3 else "modules"
        return f"reference/{package}.md", f"#{module}"
    if file.parts[0] == "examples" and file.suffix in (".py", ".ipynb"):
        return f"examples/{file.stem}.md", ""
    if file.parts[0] == "docs":
        return str(PurePosixPath(*file.parts[1:])), ""
    return f"files/{path}", ""


def for_the_site(text: str, home: str, copy: Callable[[str], str]) -> str:
    """The page of the project's file `home` as the site needs it; `copy` is told of every file to be put there."""
    parts = _FENCE.split(text)  # what stands in a fence is code, and left alone
    shown = [
        part if part.startswith("```") else _with_blank_lines(_plain_brackets(_relinked(part, home, copy)))
        for part in parts
    ]
    return "".join(shown)


def _relinked(text: str, home: str, copy: Callable[[str], str]) -> str:
    here = PurePosixPath(place_of(home)[0]).parent

    def moved(match: re.Match[str]) -> str:
        target, part = match[1], match[2] or ""
        if re.match(r"[a-z]+:", target):
            return match[0]
        path = os.path.normpath(PurePosixPath(home).parent / target)
        place, default = place_of(copy(path))
        return os.path.relpath(place, here) + (part or default)

    return _LINK.sub(moved, text)


def _plain_brackets(text: str) -> str:
    """`[CLS] [SEP]` is text; the site's reader would take a bracket after a bracket for a link."""
    parts = _CODE.split(text)
    return "".join(part if part.startswith("`") else re.sub(r"\](\s?)\[", r"]\1\\[", part) for part in parts)


def _with_blank_lines(text: str) -> str:
    """A list or a table may follow a paragraph at once in the project; the site's reader wants a blank line."""
    lines = text.split("\n")
    shown = lines[:1]
    for before, line in pairwise(lines):
        starts = _BEGINS.match(line) and not _BEGINS.match(before)
        if starts and before.strip() and not before.startswith((" ", "#", "<")):
            shown.append("")
        shown.append(line)
    return "\n".join(shown)
