"""The official GLUE files: tab-separated, quotes are text, one row a line, nothing missing."""

import math
import re
from pathlib import Path

from sparsebert.errors import TaskError
from sparsebert.tasks.lines import decoded_lines
from sparsebert.tasks.rows import Place, Reading, TextRow
from sparsebert.tasks.table import SCORE_RANGE, File, Task

_NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?", re.ASCII)


def read_tsv(path: Path, task: Task, file: File) -> Reading:
    """Rows and problems in the order of the lines."""
    lines = decoded_lines(path)
    if file.header:
        _check_header(path, next(lines)[1], file)
    seen: dict[str, int] = {}
    for number, line in lines:
        yield line if isinstance(line, TaskError) else _row(line, Place(path, number), task, file, seen)


def _check_header(path: Path, line: str | TaskError, file: File) -> None:
    if isinstance(line, TaskError):
        raise line
    found = tuple(line.split("\t"))
    if found == file.columns:
        return
    place = Place(path, 1)
    if len(found) != len(file.columns):
        raise place.error(f"a header of {len(found)} columns", f"{len(file.columns)}: {', '.join(file.columns)}")
    at = next(index for index in range(len(found)) if found[index] != file.columns[index])
    raise place.error(f"column {at + 1} called {found[at][:80]!r}", f"{file.columns[at]!r}, as in the official header")


def _row(line: str, place: Place, task: Task, file: File, seen: dict[str, int]) -> TextRow | TaskError:
    cells = line.split("\t")
    if len(cells) != len(file.columns):
        return place.error(
            f"{len(cells)} columns in {line[:60]!r}", f"{len(file.columns)}: {', '.join(file.columns)}, tabs in between"
        )
    values = dict(zip(file.columns, cells, strict=True))
    try:
        texts = [_text(values, column, task, place) for column in task.text]
        if not any(texts):
            raise Place(place.path, place.line, task.text[0]).error("no text at all", "a sentence")
        return TextRow(
            id=_id(values, place, task, file, seen),
            first=texts[0],
            second=texts[1] if len(texts) == 2 else None,
            label=parse_label(values[task.label], task, place) if file.labelled else None,
        )
    except TaskError as error:
        return error


def _text(values: dict[str, str], column: str, task: Task, place: Place) -> str:
    """Official SST-2 sentences end in a space; spaces around a sentence mean nothing to any task."""
    text = values[column].strip(" ")
    if not text and len(task.text) == 1:
        raise Place(place.path, place.line, column).value_error(text, "a sentence")
    return text


def _id(values: dict[str, str], place: Place, task: Task, file: File, seen: dict[str, int]) -> str:
    """The row's own number where its file has one, else its place among the rows."""
    column = task.id or ("index" if "index" in file.columns else None)
    if column is None:
        return str(place.line - 1 - file.header)
    found = values[column]
    where = Place(place.path, place.line, column)
    if not found.strip():
        raise where.value_error(found, "the row's number")
    if found in seen:
        raise where.value_error(found, f"each number once; line {seen[found]} has it too")
    seen[found] = place.line
    return found


def parse_label(text: str, task: Task, place: Place) -> int | float:
    """A class as its place in the task's list, or a score."""
    where = Place(place.path, place.line, task.label)
    if task.kind == "regression":
        low, high = SCORE_RANGE
        if not _NUMBER.fullmatch(text) or not low <= float(text) <= high or math.isnan(float(text)):
            raise where.value_error(text, f"a score from {low:g} to {high:g}")
        return float(text)
    if text not in task.labels:
        raise where.value_error(text, f"one of {', '.join(task.labels)}")
    return task.labels.index(text)
