"""The reference: a page a package, made from docstrings, and one with the names that `import sparsebert` offers."""

import inspect
from pathlib import Path

from places import PROJECT

import sparsebert

SOURCE = PROJECT / "src" / "sparsebert"


def reference(packages: list[str]) -> dict[str, str]:
    """Pages by their places on the site; packages in the order in which they are to be read."""
    pages = {f"reference/{name}.md": f"# sparsebert.{name}\n\n::: sparsebert.{name}\n" for name in packages}
    modules = sorted(path.stem for path in SOURCE.glob("*.py") if not path.stem.startswith("__"))
    blocks = "\n".join(f"::: sparsebert.{name}\n" for name in modules)
    return {"reference/index.md": _names(packages), **pages, "reference/modules.md": f"# Single modules\n\n{blocks}"}


def _names(packages: list[str]) -> str:
    rows = [_row(name) for name in sparsebert.__all__ if not name.startswith("__")]
    shown = "\n".join(row for row in sorted(rows, key=str.lower))
    links = "\n".join(f"| [{name}]({name}.md) | {_first_line(SOURCE / name)} |" for name in packages)
    return (
        "# Reference\n## What `from sparsebert import` offers\n| name | what it is |\n|---|---|\n"
        f"{shown}\n\n## Packages\nIn the order in which data flows.\n\n| package | what it does |\n|---|---|\n{links}\n"
        "| [single modules](modules.md) | Errors, files, draws, memory, settings. |\n"
    )


def _row(name: str) -> str:
    thing = getattr(sparsebert, name)
    if inspect.ismodule(thing):
        return f"| [`{name}`]({name}.md) | {_told(thing)} |"
    return f"| [`{name}`][{thing.__module__}.{thing.__qualname__}] | {_told(thing)} |"


def _told(thing: object) -> str:
    return inspect.cleandoc(thing.__doc__ or "").split("\n")[0].replace("|", "\\|")


def _first_line(package: Path) -> str:
    return (package / "__init__.py").read_text(encoding="utf-8").removeprefix('"""').split("\n")[0].rstrip('"')
