"""The packages as the README lists them: in the order of design.md, each in the first line of its own docstring."""

import re

from tree import PROJECT, told

SOURCE = PROJECT / "src" / "sparsebert"


def packages() -> str:
    """A table with a row a package."""
    rows = [f"| `{name}` | {told(SOURCE / name / '__init__.py')} |" for name in package_names()]
    return "\n".join(["| package | what it does |", "|---|---|", *rows])


def package_names() -> list[str]:
    """All of them, in the order in which design.md draws them."""
    design = (PROJECT / "docs" / "design.md").read_text(encoding="utf-8")
    drawing = design.split("## Packages\n```\n")[1].split("\n```")[0]
    there = {folder.parent.name for folder in SOURCE.glob("*/__init__.py")}
    order = [name for name in re.findall(r"\w+", drawing) if name in there]
    if sorted(order) != sorted(there):
        raise SystemExit(f"docs/design.md draws {', '.join(order)}; the packages are {', '.join(sorted(there))}")
    return order
