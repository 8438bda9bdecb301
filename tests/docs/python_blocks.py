"""Runs the Python of a page as written: all its blocks in order, as one module, in the current folder."""

import importlib.util
import sys
from pathlib import Path
from typing import Any

from tests.docs.pages import blocks


def script_of(page: Path) -> str:
    """The page's Python, each line at the place that it has on the page, so that a traceback names it."""
    script = ""
    for block in blocks(page):
        if block.language == "python":
            script += "\n" * (block.first_line - 1 - script.count("\n")) + block.code + "\n"
    return script


def run(page: Path, names: dict[str, Any]) -> dict[str, Any]:
    """Everything that the page's Python defines; `names` are there before its first line."""
    name = f"page_{page.stem.replace('-', '_')}"
    path = Path(f"{name}.py").resolve()
    path.write_text(script_of(page), encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    module.__dict__.update(names)
    sys.modules[name] = module  # transformers looks the source of a model up there
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules[name]
    return module.__dict__
