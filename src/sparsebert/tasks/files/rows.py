"""What a task file holds, row by row."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from sparsebert.errors import TaskError


@dataclass(frozen=True, slots=True)
class TextRow:
    """One sentence or a pair of them; the label is a class, a score, or unknown (a test row)."""

    id: str
    first: str
    second: str | None = None
    label: int | float | None = None

    @property
    def texts(self) -> tuple[str, ...]:
        return (self.first,) if self.second is None else (self.first, self.second)


@dataclass(frozen=True, slots=True)
class ChoiceRow:
    """A beginning and the endings to choose from (SWAG)."""

    id: str
    context: str
    start: str  # the words that every ending continues
    endings: tuple[str, ...]
    label: int | None = None

    @property
    def texts(self) -> tuple[str, ...]:
        return (self.context, self.start, *self.endings)


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

    @property
    def texts(self) -> tuple[str, ...]:
        return (self.question, self.context)


Row: TypeAlias = TextRow | ChoiceRow | QuestionRow
# A reader goes on after a bad row: who reads decides whether the first problem is raised or all are collected.
Reading: TypeAlias = Iterator[Row | TaskError]
