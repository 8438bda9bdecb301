"""Questions about long contexts as windows of tokens that each fit the model (SQuAD)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int32
from tokenizers import Tokenizer

from sparsebert.errors import TaskError
from sparsebert.tasks.encoding.sequences import Sequences
from sparsebert.tasks.files.rows import Answer, QuestionRow
from sparsebert.text import special_ids

MAX_QUESTION = 64  # tokens; longer questions are cut, as in BERT's own recipe
SHORTEST = MAX_QUESTION + 3 + 16  # tokens of a window: a question, three special tokens, some context


@dataclass(frozen=True)
class Window:
    """What one sequence shows of a context."""

    question: int  # index of the row
    context_from: int  # token of the sequence at which the context begins
    offsets: Int32[np.ndarray, "tokens 2"]  # first character and the one behind the last, for every context token
    span: tuple[int, int]  # first and last token of the answer in the sequence; (0, 0): none of it here


def encode_questions(
    tokenizer: Tokenizer, rows: Sequence[QuestionRow], length: int, stride: int
) -> tuple[Sequences, tuple[Window, ...]]:
    """[CLS] question [SEP] part of the context [SEP]; each part begins `stride` tokens after the one before.

    Training looks for the first answer: where a window does not hold all of it, the answer is [CLS]. Window k is
    sequence k.
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
        before = [special.cls, *encoded.ids[:MAX_QUESTION], special.sep]
        ids, offsets = contexts.of(row.context)
        room = length - len(before) - 1
        answer = _token_span(offsets, row.answers[0]) if row.answers else None
        for start in window_starts(len(ids), room, stride):
            part = slice(start, start + room)
            items.append((np.concatenate([before, ids[part], [special.sep]]).astype(np.int32), len(before)))
            span = _span_in_window(answer, start, len(ids[part]), len(before))
            windows.append(Window(index, len(before), offsets[part], span))
    return Sequences.of(items, special.pad), tuple(windows)


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


def _token_span(offsets: Int32[np.ndarray, "n 2"], answer: Answer) -> tuple[int, int] | None:
    """First and last token that touch the answer; None where no token does (it is all spaces, say)."""
    touching = np.flatnonzero((offsets[:, 1] > answer.start) & (offsets[:, 0] < answer.start + len(answer.text)))
    return (int(touching[0]), int(touching[-1])) if len(touching) else None


def _span_in_window(answer: tuple[int, int] | None, start: int, size: int, before: int) -> tuple[int, int]:
    """The answer among the tokens of a sequence that shows `size` tokens of the context, from `start` on."""
    if answer is None or answer[0] < start or answer[1] >= start + size:
        return (0, 0)
    return answer[0] - start + before, answer[1] - start + before
