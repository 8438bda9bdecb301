"""Questions about long contexts as windows of tokens that each fit the model (SQuAD)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int32, Int64
from tokenizers import Tokenizer

from sparsebert.errors import TaskError
from sparsebert.tasks.features import Sequences
from sparsebert.tasks.rows import Answer, QuestionRow
from sparsebert.text import SpecialIds, special_ids

MAX_QUESTION = 64  # tokens; longer questions are cut, as in BERT's own recipe
SHORTEST = MAX_QUESTION + 3 + 16  # tokens of a window: a question, three special tokens, some context


@dataclass(frozen=True)
class Window:
    """What one sequence shows of a context."""

    question: int  # index of the row
    context_from: int  # token of the sequence at which the context begins
    offsets: Int32[np.ndarray, "tokens 2"]  # first character and the one behind the last, for every context token
    span: tuple[int, int]  # first and last token of the answer in the sequence; (0, 0): none of it here


@dataclass(frozen=True)
class Windows:
    """All windows of a data set; window k is sequence k."""

    sequences: Sequences
    windows: tuple[Window, ...]

    @property
    def spans(self) -> Int64[np.ndarray, "windows 2"]:
        return np.array([window.span for window in self.windows], dtype=np.int64).reshape(-1, 2)


def encode_questions(tokenizer: Tokenizer, rows: Sequence[QuestionRow], length: int, stride: int) -> Windows:
    """[CLS] question [SEP] part of the context [SEP]; each part begins `stride` tokens after the one before.

    Training looks for the first answer: where a window does not hold all of it, the answer is [CLS].
    """
    if length < SHORTEST:
        raise TaskError(f"windows of {length} tokens leave no room beside a question; use at least {SHORTEST}")
    if stride < 1:
        raise TaskError(f"a stride of {stride} never reaches the end of a context; use at least 1")
    special, contexts = special_ids(tokenizer), _Contexts(tokenizer)
    questions = tokenizer.encode_batch([row.question for row in rows], add_special_tokens=False)
    windows: list[Window] = []
    items: list[tuple[Int32[np.ndarray, " n"], int]] = []
    for index, (row, encoded) in enumerate(zip(rows, questions, strict=True)):
        question = np.array(encoded.ids[:MAX_QUESTION], dtype=np.int32)
        ids, offsets = contexts.of(row.context)
        room = length - len(question) - 3
        answer = _token_span(offsets, row.answers[0]) if row.answers else None
        for start in window_starts(len(ids), room, stride):
            part = slice(start, start + room)
            windows.append(_window(index, len(question) + 2, offsets[part], start, answer))
            items.append((_joined(question, ids[part], special), len(question) + 2))
    return Windows(Sequences.of(items, special.pad), tuple(windows))


def window_starts(num_tokens: int, room: int, stride: int) -> list[int]:
    """Where windows begin; together they show every token, and no window lies inside another."""
    starts = [0]
    while starts[-1] + room < num_tokens:
        starts.append(starts[-1] + min(stride, room))
    return starts


class _Contexts:
    """Contexts serve several questions each, so each is encoded once."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self.known: dict[str, tuple[Int32[np.ndarray, " n"], Int32[np.ndarray, "n 2"]]] = {}

    def of(self, context: str) -> tuple[Int32[np.ndarray, " n"], Int32[np.ndarray, "n 2"]]:
        if context not in self.known:
            encoded = self.tokenizer.encode(context, add_special_tokens=False)
            offsets = np.array(encoded.offsets, dtype=np.int32).reshape(-1, 2)
            self.known[context] = np.array(encoded.ids, dtype=np.int32), offsets
        return self.known[context]


def _joined(
    question: Int32[np.ndarray, " q"], part: Int32[np.ndarray, " c"], special: SpecialIds
) -> Int32[np.ndarray, " n"]:
    return np.concatenate([[special.cls], question, [special.sep], part, [special.sep]]).astype(np.int32)


def _token_span(offsets: Int32[np.ndarray, "n 2"], answer: Answer) -> tuple[int, int] | None:
    """First and last token that touch the answer; None where no token does (it is all spaces, say)."""
    touching = np.flatnonzero((offsets[:, 1] > answer.start) & (offsets[:, 0] < answer.start + len(answer.text)))
    return (int(touching[0]), int(touching[-1])) if len(touching) else None


def _window(
    question: int, context_from: int, offsets: Int32[np.ndarray, "n 2"], start: int, answer: tuple[int, int] | None
) -> Window:
    span = (0, 0)
    if answer is not None and start <= answer[0] and answer[1] < start + len(offsets):
        span = (answer[0] - start + context_from, answer[1] - start + context_from)
    return Window(question, context_from, offsets, span)
