"""From start and end scores to answers: the best spans of every question over all of its windows."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from sparsebert.tasks.encoding.windows import Window
from sparsebert.tasks.files.rows import QuestionRow

NUM_BEST = 20  # candidates kept for every question
MAX_ANSWER = 30  # tokens


@dataclass(frozen=True)
class Candidate:
    """A span of the context."""

    text: str
    start: int  # in characters
    score: float  # start score plus end score


@dataclass(frozen=True)
class SpanPrediction:
    """What the model says to one question."""

    id: str
    candidates: tuple[Candidate, ...]  # best first; never empty unless the context is
    no_answer: float  # score of [CLS] minus the best candidate's: above the threshold, there is no answer

    def text(self, threshold: float | None = None) -> str:
        """The answer; "" where the question has none, given a threshold for that."""
        if not self.candidates or (threshold is not None and self.no_answer > threshold):
            return ""
        return self.candidates[0].text


def predict_spans(
    rows: Sequence[QuestionRow], windows: Sequence[Window], scores: Sequence[Float[np.ndarray, "n 2"]]
) -> list[SpanPrediction]:
    """Answers from the scores of every window, one row of (start, end) scores a token."""
    found: list[list[Candidate]] = [[] for _ in rows]
    nothing = [np.inf] * len(rows)
    for window, score in zip(windows, scores, strict=True):
        found[window.question] += _candidates(window, score, rows[window.question].context)
        # A question has no answer only if no window shows one: the least sure of them decides.
        nothing[window.question] = min(nothing[window.question], float(score[0].sum()))
    predictions = []
    for row, candidates, null in zip(rows, found, nothing, strict=True):
        best = _best(candidates)
        predictions.append(SpanPrediction(row.id, best, null - (best[0].score if best else -np.inf)))
    return predictions


def _candidates(window: Window, score: Float[np.ndarray, "n 2"], context: str) -> list[Candidate]:
    size = len(window.offsets)
    if size == 0:
        return []
    part = score[window.context_from : window.context_from + size]
    starts, ends = _top(part[:, 0]), _top(part[:, 1])
    fits = (ends[None] >= starts[:, None]) & (ends[None] - starts[:, None] < MAX_ANSWER)
    rows, columns = np.nonzero(fits)
    total = part[starts[rows], 0] + part[ends[columns], 1]
    found = []
    for chosen in _top(total):
        begin, end = int(window.offsets[starts[rows[chosen]], 0]), int(window.offsets[ends[columns[chosen]], 1])
        found.append(Candidate(context[begin:end], begin, float(total[chosen])))
    return found


def _top(values: Float[np.ndarray, " n"]) -> np.ndarray:
    """Places of the largest values, largest first, ties by place."""
    return np.argsort(-values, kind="stable")[:NUM_BEST]


def _best(candidates: list[Candidate]) -> tuple[Candidate, ...]:
    """Each span once, though several windows show it."""
    spans: dict[tuple[int, str], Candidate] = {}
    for candidate in sorted(candidates, key=lambda one: (-one.score, one.start, len(one.text))):
        spans.setdefault((candidate.start, candidate.text), candidate)
    return tuple(spans.values())[:NUM_BEST]
