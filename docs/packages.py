"""The packages as the README lists them: in the order of design.md, each in the first line of its own docstring."""

from tree import PROJECT, told

SOURCE = PROJECT / "src" / "sparsebert"
ARROW = " → "


def packages() -> str:
    """A table with a row a package; one that design.md leaves out is an error, as is one that does not exist."""
    rows = [f"| `{name}` | {told(SOURCE / name / '__init__.py')} |" for name in _in_order()]
    return "\n".join(["| package | what it does |", "|---|---|", *rows])


def _in_order() -> list[str]:
    there = {folder.parent.name for folder in SOURCE.glob("*/__init__.py")}
    drawn = next(line for line in _design() if ARROW in line).split(ARROW)
    beside = [line.strip() for line in _design() if line.strip() in there]  # a package that stands beside the arrows
    order = [name.strip() for name in [*drawn, *beside] if (SOURCE / name.strip()).is_dir()]
    if set(order) != there:
        raise SystemExit(f"docs/design.md draws {', '.join(order)}; the packages are {', '.join(sorted(there))}")
    return order


def _design() -> list[str]:
    return (PROJECT / "docs" / "design.md").read_text(encoding="utf-8").splitlines()
