"""What single cells of a table must hold: a number that no other row has, a label."""

import re

from sparsebert.tasks.files.text_lines import FilePlace
from sparsebert.tasks.table import SCORE_RANGE, Task

_NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?", re.ASCII)


def own_number(text: str, place: FilePlace, seen: dict[str, int]) -> str:
    """The row's number as it stands; seen: lines by the numbers found so far."""
    if not text.strip():
        raise place.value_error(text, "the row's number")
    if text in seen:
        raise place.value_error(text, f"each number once; line {seen[text]} has it too")
    seen[text] = place.line
    return text


def label_of(text: str, task: Task, place: FilePlace) -> int | float:
    """A class as its place in the task's list, or a score."""
    where = place.in_column(task.label)
    if task.kind == "regression":
        low, high = SCORE_RANGE
        if not _NUMBER.fullmatch(text) or not low <= float(text) <= high:
            raise where.value_error(text, f"a score from {low:g} to {high:g}")
        return float(text)
    if text not in task.labels:
        raise where.value_error(text, f"one of {', '.join(task.labels)}")
    return task.labels.index(text)
