"""What a Markdown page holds beside prose: code blocks, code in a line, links."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
PAGES = sorted([*PROJECT.glob("*.md"), *(PROJECT / "docs").rglob("*.md")])
_FENCE = "```"


@dataclass(frozen=True)
class Block:
    language: str  # of the fence: python, sh, or nothing
    first_line: int  # of the code, counted from 1 as editors do
    code: str


def name_of(page: Path) -> str:
    return page.relative_to(PROJECT).as_posix()


def blocks(page: Path) -> list[Block]:
    """Fenced blocks, and blocks that are indented by four spaces after an empty line or a heading."""
    return list(_blocks(page.read_text(encoding="utf-8").splitlines()))


def _blocks(lines: list[str]) -> Iterator[Block]:
    place = 0
    while place < len(lines):
        start = place + 1
        if lines[place].startswith(_FENCE):
            end = next(at for at in range(start, len(lines)) if lines[at] == _FENCE)
            yield Block(lines[place].removeprefix(_FENCE), start + 1, "\n".join(lines[start:end]))
            place = end + 1
        elif lines[place][:1] in ("", "#") and start < len(lines) and lines[start].startswith("    "):
            end = next((at for at in range(start, len(lines)) if not lines[at].startswith("    ")), len(lines))
            yield Block("", start + 1, "\n".join(line.removeprefix("    ") for line in lines[start:end]))
            place = end
        else:
            place += 1


def _prose(page: Path) -> str:
    """The page without its fenced blocks."""
    return re.sub(rf"^{_FENCE}.*?^{_FENCE}$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def code_in_lines(page: Path) -> list[str]:
    """Every `span` of the prose, on one line."""
    return [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", _prose(page))]


def links(page: Path) -> list[str]:
    """Where the page links to, pictures too; web addresses left out."""
    found = re.findall(r"\]\(([^)#\s]+)[^)]*\)", _prose(page))
    return [target for target in found if not re.match(r"[a-z]+:", target)]
