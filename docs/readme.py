"""Writes what is generated in the README, between two comments that name it.

python docs/readme.py           rewrite the README
python docs/readme.py --check   exit 1 where it is out of date
"""

import sys
from pathlib import Path

from findings import findings
from tree import tree

README = Path(__file__).resolve().parents[1] / "README.md"
PARTS = {"findings": findings, "tree": tree}


def with_parts(text: str) -> str:
    for name, made in PARTS.items():
        start, end = f"<!-- {name}: made by `make docs` -->\n", f"\n<!-- end of {name} -->"
        before, rest = text.split(start)
        _, after = rest.split(end)
        text = before + start + made() + end + after
    return text


def main() -> int:
    text = README.read_text(encoding="utf-8")
    current = with_parts(text)
    if "--check" in sys.argv:
        return 0 if current == text else 1
    README.write_text(current, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
