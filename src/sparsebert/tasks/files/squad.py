"""The official SQuAD files: JSON whose every span is checked against its context."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

from sparsebert.errors import TaskError
from sparsebert.files import read_bytes
from sparsebert.tasks.files.json_places import place_of
from sparsebert.tasks.files.rows import Answer, QuestionRow, Reading
from sparsebert.tasks.files.text_lines import is_broken
from sparsebert.tasks.table import File, Task

Path_ = tuple[str | int, ...]  # keys and indices from the top of the file


class _BadError(Exception):
    """What is wrong, where in the tree; becomes a TaskError once the place in the file is looked up."""

    def __init__(self, at: Path_, found: str, expected: str) -> None:
        self.at, self.found, self.expected = at, found, expected


# An object and its place, or what was found instead.
_Found: TypeAlias = tuple[Any, Path_] | _BadError


def read_squad(path: Path, task: Task, file: File) -> Reading:
    """Questions and problems in the order of the file."""
    text = _decoded(path)
    for found in _questions(_parsed(path, text), task, file, set()):
        yield _located(path, text, found) if isinstance(found, _BadError) else found


def _decoded(path: Path) -> str:
    data = read_bytes(path)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        bad = data[error.start : error.end]
        raise TaskError(f"{path}, line {line}: found the bytes {bad!r}; expected UTF-8 text") from error


def _parsed(path: Path, text: str) -> Any:
    def object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        fields = dict(pairs)
        if len(fields) != len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            # json keeps the last silently; a row with two answers fields must not lose one.
            line = text.count("\n", 0, max(text.find(f'"{twice}"'), 0)) + 1
            raise TaskError(
                f"{path}, near line {line}: found the field {twice!r} twice in one object; expected it once"
            )
        return fields

    try:
        return json.loads(text, object_pairs_hook=object_of)
    except json.JSONDecodeError as error:
        raise TaskError(
            f"{path}, line {error.lineno}, column {error.colno}: found what is not JSON ({error.msg}); "
            "expected the official file"
        ) from error
    except (ValueError, RecursionError) as error:
        raise TaskError(
            f"{path}, line 1: found JSON nested without end, or an endless number; expected the official file"
        ) from error


def _located(path: Path, text: str, bad: _BadError) -> TaskError:
    line, column = place_of(text, bad.at)
    trail = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in bad.at).lstrip(".")
    return TaskError(f"{path}, line {line}, column {column} ({trail}): found {bad.found}; expected {bad.expected}")


def _questions(tree: Any, task: Task, file: File, seen: set[str]) -> Iterator[QuestionRow | _BadError]:
    for paragraph in _inside(_inside([(tree, ())], "data"), "paragraphs"):
        try:
            fields, at = _raised(paragraph)
            context = _string(fields, at, "context")
        except _BadError as bad:
            yield bad
            continue
        for question in _inside([(fields, at)], "qas"):
            try:
                yield _question(*_raised(question), context, task, file, seen)
            except _BadError as bad:
                yield bad


def _question(fields: Any, at: Path_, context: str, task: Task, file: File, seen: set[str]) -> QuestionRow:
    number, question = _string(fields, at, "id"), _string(fields, at, "question")
    if number in seen:
        raise _BadError((*at, "id"), repr(number), "each id once")
    seen.add(number)
    impossible = fields.get("is_impossible", False)
    if not isinstance(impossible, bool) or (impossible and not task.with_no_answer):
        raise _BadError((*at, "is_impossible"), repr(impossible), "true or false, and never true in v1.1")
    if not file.labelled:
        return QuestionRow(number, question, context)
    answers = tuple(_answer(*_raised(answer), context) for answer in _inside([(fields, at)], "answers"))
    if impossible and answers:
        raise _BadError((*at, "answers"), f"{len(answers)} answers to an impossible question", "none")
    if not impossible and not answers:
        raise _BadError((*at, "answers"), "no answer to a possible question", "at least one")
    return QuestionRow(number, question, context, answers)


def _answer(fields: Any, at: Path_, context: str) -> Answer:
    text, start = _string(fields, at, "text"), fields.get("answer_start")
    if isinstance(start, bool) or not isinstance(start, int):
        raise _BadError((*at, "answer_start"), repr(start), "a whole number, the character at which the answer starts")
    found = context[start : start + len(text)] if start >= 0 else ""
    if found != text:
        raise _BadError(
            (*at, "answer_start"), f"{found[:60]!r} at character {start} of the context", f"the answer {text[:60]!r}"
        )
    return Answer(text, start)


def _inside(parents: Iterable[_Found], name: str) -> Iterator[_Found]:
    """The objects of a list in a field of each parent; what is no object is a problem, and problems go on."""
    for parent in parents:
        if isinstance(parent, _BadError):
            yield parent
            continue
        fields, at = parent
        items = fields.get(name) if isinstance(fields, dict) else None
        if not isinstance(items, list):
            yield _BadError(at, f"no list {name!r}", f"an object with a list {name!r}")
            continue
        for index, item in enumerate(items):
            here = (*at, name, index)
            yield (item, here) if isinstance(item, dict) else _BadError(here, _shown(item), "a JSON object")


def _raised(found: _Found) -> tuple[Any, Path_]:
    if isinstance(found, _BadError):
        raise found
    return found


def _string(fields: dict[str, Any], at: Path_, name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str) or not value.strip():
        raise _BadError((*at, name) if name in fields else at, f"{name} {_shown(value)}", "text")
    if is_broken(value):
        raise _BadError((*at, name), f"half a surrogate pair in {name}", "whole characters")
    return value


def _shown(value: Any) -> str:
    return repr(value)[:80]
