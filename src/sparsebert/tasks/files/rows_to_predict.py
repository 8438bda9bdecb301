"""Rows to predict: an official file, JSON Lines, or plain lines with a tab between the two texts of a pair."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from sparsebert.errors import TaskError
from sparsebert.files import file_errors
from sparsebert.tasks.files.reading import read_file
from sparsebert.tasks.files.rows import ChoiceRow, QuestionRow, Row, TextRow
from sparsebert.tasks.files.text_lines import FilePlace, decode, is_broken
from sparsebert.tasks.table import NUM_ENDINGS, File, Task


def read_inputs(path: Path, task: Task, *, labelled: bool = False) -> list[Row]:
    """Rows of a file: official where its name ends as the task's files do, lines otherwise (which have no labels)."""
    if path.suffix != f".{task.format}" and not labelled:
        with file_errors("read", path), path.open("rb") as stream:
            return list(read_lines(stream, task, path))
    problems = []
    for file in _layouts(task, labelled):
        try:
            return read_file(path, task, file)
        except TaskError as error:
            problems.append(str(error))
    raise TaskError(
        problems[0] if len(set(problems)) == 1 else f"{path} has none of the layouts of {task.title}: {problems[0]}"
    )


def _layouts(task: Task, labelled: bool) -> Iterator[File]:
    """Labels need not be there to predict, yet a file that has them is welcome."""
    if not labelled:
        yield from task.test.values()
    yield from task.dev.values()
    yield task.train


def read_lines(lines: Iterable[bytes], task: Task, name: Path) -> Iterator[Row]:
    """A row a line; empty lines are refused, since nobody could tell which answer belongs to which."""
    for number, line in enumerate(lines, start=1):
        place = FilePlace(name, number)
        text = decode(line.removesuffix(b"\n").removesuffix(b"\r"), place)
        yield _from_json(text, task, place) if text.startswith("{") else _from_text(text, task, place)


def _from_text(text: str, task: Task, place: FilePlace) -> TextRow:
    texts = text.split("\t")
    if task.kind in ("choice", "span"):
        raise place.value_error(text, f"a JSON object with {', '.join(_fields(task))}")
    if len(texts) != len(task.text) or not any(part.strip() for part in texts):
        raise place.value_error(text, "a sentence" if len(task.text) == 1 else "two sentences with a tab in between")
    return TextRow(str(place.line - 1), texts[0], texts[1] if len(texts) == 2 else None)


def _fields(task: Task) -> tuple[str, ...]:
    if task.kind == "span":
        return ("question", "context")
    if task.kind == "choice":
        return ("sent1", "sent2", *(f"ending{index}" for index in range(NUM_ENDINGS)))
    return task.text


def _from_json(text: str, task: Task, place: FilePlace) -> Row:
    try:
        fields: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise place.error(f"a line that is not JSON ({error})", f"an object with {', '.join(_fields(task))}") from error
    values = [fields.get(name) for name in _fields(task)]
    for name, value in zip(_fields(task), values, strict=True):
        if not isinstance(value, str) or is_broken(value):
            raise place.in_column(name).value_error(str(value), "text")
    number = str(fields.get("id", place.line - 1))
    if task.kind == "span":
        return QuestionRow(number, values[0], values[1])
    if task.kind == "choice":
        return ChoiceRow(number, values[0], values[1], tuple(values[2:]))
    return TextRow(number, values[0], values[1] if len(values) == 2 else None)
