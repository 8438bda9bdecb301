"""What a task file holds, row by row; and a place in a file, for errors that name it."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from sparsebert.errors import TaskError


@dataclass(frozen=True, slots=True)
class TextRow:
    """One sentence or a pair of them; the label is a class, a score, or unknown (a test row)."""

    id: str
    first: str
    second: str | None = None
    label: int | float | None = None


@dataclass(frozen=True, slots=True)
class ChoiceRow:
    """A beginning and the endings to choose from (SWAG)."""

    id: str
    context: str
    start: str  # the words that every ending continues
    endings: tuple[str, ...]
    label: int | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """A span of its context."""

    text: str
    start: int  # in characters


@dataclass(frozen=True, slots=True)
class QuestionRow:
    """A question about a context (SQuAD); no answers: there is none in the context, or it is not known."""

    id: str
    question: str
    context: str
    answers: tuple[Answer, ...] = ()


Row: TypeAlias = TextRow | ChoiceRow | QuestionRow
# A reader goes on after a bad row: who reads decides whether the first problem is raised or all are collected.
Reading: TypeAlias = Iterator[Row | TaskError]

_SHOWN = 80  # characters of a value that an error quotes


@dataclass(frozen=True)
class Place:
    """Where something was found."""

    path: Path
    line: int
    column: str | None = None

    def __str__(self) -> str:
        column = "" if self.column is None else f", column {self.column!r}"
        return f"{self.path}, line {self.line}{column}"

    def error(self, found: str, expected: str) -> TaskError:
        return TaskError(f"{self}: found {found}; expected {expected}")

    def value_error(self, value: str, expected: str) -> TaskError:
        shown = value if len(value) <= _SHOWN else value[: _SHOWN - 3] + "..."
        return self.error(repr(shown), expected)
