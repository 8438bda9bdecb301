"""SQuAD's exact match and F1 by the official definition, and v2.0's best no-answer threshold."""

import re
import string
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from sparsebert.errors import TaskError

_ARTICLES = re.compile(r"\b(a|an|the)\b", re.UNICODE)
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalised(text: str) -> str:
    """Lower case, without ASCII punctuation and articles, single spaces: in this order, as the official script."""
    bare = text.lower().translate(_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", bare).split())


def exact_match(predicted: str, true: str) -> float:
    return float(normalised(predicted) == normalised(true))


def f1(predicted: str, true: str) -> float:
    """Harmonic mean of precision and recall over words; without words on a side, 1 only if both have none."""
    found, wanted = normalised(predicted).split(), normalised(true).split()
    if not found or not wanted:
        return float(found == wanted)
    shared = sum((Counter(found) & Counter(wanted)).values())
    if shared == 0:
        return 0.0
    precision, recall = shared / len(found), shared / len(wanted)
    return 2 * precision * recall / (precision + recall)


def best_over(metric: Callable[[str, str], float], predicted: str, answers: Sequence[str]) -> float:
    """Against the closest of several true answers; none, or none with a word in it: the right answer is empty."""
    worded = [answer for answer in answers if normalised(answer)]
    return max(metric(predicted, answer) for answer in worded or [""])


def squad_scores(predicted: Mapping[str, str], answers: Mapping[str, Sequence[str]]) -> dict[str, float]:
    """Exact match and F1 over all questions, in points."""
    _check(predicted, answers)
    return {
        "exact": 100 * fmean(best_over(exact_match, predicted[id], true) for id, true in answers.items()),
        "f1": 100 * fmean(best_over(f1, predicted[id], true) for id, true in answers.items()),
    }


@dataclass(frozen=True)
class Threshold:
    """Questions whose no-answer score lies above `value` are left unanswered."""

    value: float
    score: float  # points, over all questions


def best_threshold(
    metric: Callable[[str, str], float],
    predicted: Mapping[str, str],
    no_answer: Mapping[str, float],
    answers: Mapping[str, Sequence[str]],
) -> Threshold:
    """The threshold that serves the metric best; `predicted` are the answers given if one must be given."""
    _check(predicted, answers)
    empty = {id: best_over(metric, "", true) for id, true in answers.items()}
    gain = {id: best_over(metric, predicted[id], true) - empty[id] for id, true in answers.items()}
    order = sorted(answers, key=lambda id: no_answer[id])
    total = sum(empty.values())
    best = Threshold(no_answer[order[0]] - 1.0, total)
    for index, id in enumerate(order):
        total += gain[id]
        # Questions with equal scores can only be answered together.
        last_of_its_score = index + 1 == len(order) or no_answer[order[index + 1]] != no_answer[id]
        if last_of_its_score and total > best.score + 1e-9:
            best = Threshold(no_answer[id], total)
    return Threshold(best.value, 100 * best.score / len(answers))


def _check(predicted: Mapping[str, str], answers: Mapping[str, Sequence[str]]) -> None:
    missing = [id for id in answers if id not in predicted]
    if missing or not answers:
        raise TaskError(
            f"{len(missing)} of {len(answers)} questions have no prediction, the first is {missing[:1]}; "
            'expected one for each, "" for no answer'
        )
