"""A task's rows as the model sees them: sequences, what belongs together, and labels."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from jaxtyping import Float64, Int64
from tokenizers import Tokenizer

from sparsebert.errors import TaskError
from sparsebert.tasks.encoding.sequences import Batch, Sequences, encode_pairs
from sparsebert.tasks.encoding.windows import Window, encode_questions
from sparsebert.tasks.files.rows import ChoiceRow, QuestionRow, Row, TextRow
from sparsebert.tasks.table import Task

Kind = TypeVar("Kind", TextRow, ChoiceRow, QuestionRow)


@dataclass(frozen=True)
class Items:
    """What is shuffled, batched and predicted: a sentence or pair, four endings, or a window.

    Item k has sequences k * each ... (k + 1) * each - 1.
    """

    rows: tuple[Row, ...]
    sequences: Sequences
    each: int = 1
    labels: Int64[np.ndarray, " items *more"] | Float64[np.ndarray, " items"] | None = None  # None: not all known
    windows: tuple[Window, ...] = ()

    def __len__(self) -> int:
        return len(self.sequences) // self.each

    @property
    def lengths(self) -> Int64[np.ndarray, " items"]:
        """Of the longest sequence of each item."""
        longest: Int64[np.ndarray, " items"] = self.sequences.lengths.reshape(-1, self.each).max(axis=1)
        return longest

    def batch(self, indices: Int64[np.ndarray, " rows"]) -> Batch:
        places = indices[:, None] * self.each + np.arange(self.each)
        return self.sequences.batch(places.reshape(-1))


def make_items(task: Task, rows: Sequence[Row], tokenizer: Tokenizer, length: int, stride: int = 0) -> Items:
    """Tokenise rows of a task; `stride` matters to windows alone."""
    if not rows:
        raise TaskError(f"{task.title} was given no rows; at least one is needed")
    if task.kind == "span":
        sequences, windows = encode_questions(tokenizer, _all(rows, QuestionRow), length, stride or task.stride)
        spans = np.array([window.span for window in windows], dtype=np.int64).reshape(-1, 2)
        return Items(tuple(rows), sequences, labels=spans, windows=windows)
    if task.kind == "choice":
        choices = _all(rows, ChoiceRow)
        pairs = [(row.context, f"{row.start} {ending}".strip()) for row in choices for ending in row.endings]
        sequences, each = encode_pairs(tokenizer, pairs, length), len(choices[0].endings)
        return Items(tuple(rows), sequences, each, _labels(choices, np.int64))
    texts = _all(rows, TextRow)
    labels = _labels(texts, np.float64 if task.kind == "regression" else np.int64)
    return Items(tuple(rows), encode_pairs(tokenizer, [row.texts for row in texts], length), labels=labels)


def _all(rows: Sequence[Row], kind: type[Kind]) -> list[Kind]:
    wrong = next((row for row in rows if not isinstance(row, kind)), None)
    if wrong is not None:
        raise TaskError(f"a {type(wrong).__name__} was given where a {kind.__name__} was expected")
    return [row for row in rows if isinstance(row, kind)]


def _labels(rows: Sequence[TextRow | ChoiceRow], dtype: type[np.generic]) -> np.ndarray | None:
    known = [row.label for row in rows if row.label is not None]
    return np.array(known, dtype=dtype) if len(known) == len(rows) else None
