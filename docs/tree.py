"""The tree of docs/tree.md, from the first line of every file's own docstring, so that the two cannot disagree."""

import ast
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
SHOWN = ["csrc", "src/sparsebert", "tests", "scorecard", "benchmarks", "examples", "release", "docs"]
FOLDERS = {
    "csrc": "the C++ kernel: plain C interface, no torch headers",
    "tests": "mirrors src/, file for file",
    "benchmarks": "one script a question; each prints ratios from one alternating run",
    "examples": "short scripts that run in a minute, and a notebook",
    "release": "how a wheel is built, audited and tried",
    "docs": "design, vocabulary, paper map, decisions, results",
}
SUFFIXES = {".py", ".cpp", ".h", ".hpp", ".md", ".json", ".toml", ".js", ".css", ".html"}


def tree() -> str:
    lines = (line for folder in SHOWN if (PROJECT / folder).is_dir() for line in _folder(PROJECT / folder, 0))
    return "\n".join(["```", *lines, "```"])


def _folder(folder: Path, depth: int) -> list[str]:
    name = folder.relative_to(PROJECT).as_posix() if depth == 0 else folder.name
    lines = [_line(depth, f"{name}/", FOLDERS.get(name) or told(folder / "__init__.py"))]
    if name in ("tests",):
        return lines + [_line(1, f"{child.name}/", told(child / "__init__.py")) for child in _folders(folder)]
    for file in sorted(folder.iterdir()):
        if file.is_file() and file.suffix in SUFFIXES and file.name != "__init__.py":
            lines.append(_line(depth + 1, file.name, told(file)))
    for child in _folders(folder):
        lines += [_line(1, f"{child.name}/", "")] if name == "docs" else _folder(child, depth + 1)
    return lines


def _folders(folder: Path) -> list[Path]:
    hidden = ("__pycache__", ".")
    return [child for child in sorted(folder.iterdir()) if child.is_dir() and not child.name.startswith(hidden)]


def _line(depth: int, name: str, told: str) -> str:
    return f"{'  ' * depth + name:<34}{told}".rstrip()


def told(file: Path) -> str:
    """What the file says of itself in its first line."""
    if not file.is_file():
        return ""
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".py":
        told = (ast.get_docstring(ast.parse(text)) or "").split("\n")[0]
    else:
        told = text.strip().split("\n")[0].lstrip("#/*<!- ").removesuffix("-->").removesuffix("*/").strip()
    return told if file.suffix in (".py", ".cpp", ".h", ".hpp", ".md") else ""
