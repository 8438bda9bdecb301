"""Writes what is generated in the README and in tree.md, between two comments that name it.

python docs/readme.py           rewrite them
python docs/readme.py --check   exit 1 where one is out of date
"""

import sys
from collections.abc import Callable
from pathlib import Path

from findings import findings
from packages import packages
from tree import tree

DOCS = Path(__file__).resolve().parent
README = DOCS.parent / "README.md"
PARTS: dict[Path, dict[str, Callable[[], str]]] = {
    README: {"findings": findings, "packages": packages},
    DOCS / "tree.md": {"tree": tree},
}


def with_parts(text: str, parts: dict[str, Callable[[], str]]) -> str:
    for name, made in parts.items():
        start, end = f"<!-- {name}: made by `make docs` -->\n", f"\n<!-- end of {name} -->"
        before, rest = text.split(start)
        _, after = rest.split(end)
        text = before + start + made() + end + after
    return text


def main() -> int:
    outdated = 0
    for page, parts in PARTS.items():
        text = page.read_text(encoding="utf-8")
        current = with_parts(text, parts)
        outdated += current != text
        if "--check" not in sys.argv:
            page.write_text(current, encoding="utf-8")
    return int("--check" in sys.argv and outdated > 0)


if __name__ == "__main__":
    sys.exit(main())
