"""The examples as pages: scripts with what they say of themselves; the notebook with what it shows, run meanwhile."""

import ast
import base64
import textwrap
from pathlib import Path
from typing import Any

from places import PROJECT, for_the_site

FOLDER = PROJECT / "examples"
NOTEBOOK = FOLDER / "tour.ipynb"
ALLOWED_SECONDS = 100  # for the whole notebook, on a laptop


def script_page(script: Path) -> str:
    """The docstring as prose, then the code."""
    source = script.read_text(encoding="utf-8")
    told = (ast.get_docstring(ast.parse(source)) or "").split("\n\n")
    title, _, promise = told[0].partition(":")
    code = source.split('"""', 2)[2].strip()
    prose = "\n\n".join([promise.strip()[:1].upper() + promise.strip()[1:], *map(_as_prose, told[1:])])
    return f"# {title}\n{prose}\n\n```python\n{code}\n```\n"


def _as_prose(paragraph: str) -> str:
    lines = textwrap.dedent(paragraph)
    return f"```sh\n{lines}\n```" if paragraph.startswith("    ") else paragraph


def notebook_page() -> tuple[str, dict[str, bytes]]:
    """The notebook as it comes out of this build, and its pictures by their names."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(NOTEBOOK, as_version=4)
    place = {"metadata": {"path": str(FOLDER)}}
    waits = {"timeout": ALLOWED_SECONDS, "startup_timeout": ALLOWED_SECONDS}
    NotebookClient(notebook, kernel_name="python3", resources=place, **waits).execute()
    parts: list[str] = []
    pictures: dict[str, bytes] = {}
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(for_the_site(cell.source, "examples/tour.ipynb", lambda path: path))
        elif cell.source:
            parts.append(f"```python\n{cell.source}\n```")
            parts += [_shown(output, pictures) for output in cell.outputs]
    return "\n\n".join(parts) + "\n", pictures


def _shown(output: dict[str, Any], pictures: dict[str, bytes]) -> str:
    """What a cell printed or drew; the richest form that a page can hold."""
    data = output.get("data", {})
    if output.get("name") == "stderr":  # warnings of this machine's libraries
        return ""
    if "image/png" in data:
        name = f"tour-{len(pictures)}.png"
        pictures[name] = base64.b64decode(data["image/png"])
        return f"![What the cell above draws]({name})"
    text = output.get("text") or data.get("text/plain", "")
    return f"```text\n{text.rstrip()}\n```" if text else ""
