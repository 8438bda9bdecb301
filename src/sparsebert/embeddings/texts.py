"""Texts of a file: one a line, or JSON Lines with a field `text`."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sparsebert.errors import FileError
from sparsebert.files import read_bytes


@dataclass(frozen=True)
class Texts:
    """In the order of the file."""

    texts: list[str]
    ids: list[Any] | None = None  # what JSON Lines call `id`, where every one of them has it


def read_texts(path: Path) -> Texts:
    """All texts of a file; an empty line is an empty text, so that row n is line n."""
    try:
        lines = read_bytes(path).decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise FileError(f"{path} is not UTF-8 (byte {error.start}); convert it first") from error
    if lines[-1] == "":
        lines.pop()
    lines = [line.removesuffix("\r") for line in lines]
    if not lines:
        raise FileError(f"{path} holds no text; expected one a line, or JSON Lines with a field text")
    if path.suffix != ".jsonl":
        return Texts(lines)
    objects = [_object(path, number, line) for number, line in enumerate(lines, 1)]
    has_ids = all("id" in one for one in objects)
    return Texts([one["text"] for one in objects], [one["id"] for one in objects] if has_ids else None)


def _object(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise FileError(f"{path}, line {number} is not JSON; expected an object with a field text") from error
    if not isinstance(found, dict) or not isinstance(found.get("text"), str):
        raise FileError(f"{path}, line {number} has no text; expected an object with a field text that holds a string")
    return found
