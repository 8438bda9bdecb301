"""A check of a task's files that reports every problem instead of raising the first."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from sparsebert.errors import TaskError
from sparsebert.tasks.files.reading import READERS, SPLITS, files_of, task_folder
from sparsebert.tasks.files.rows import QuestionRow, Row
from sparsebert.tasks.table import SCORE_RANGE, File, Task


@dataclass(frozen=True)
class PartReport:
    """What a file holds, and what is wrong with it."""

    path: str
    num_rows: int
    labels: dict[str, int]  # rows of each label
    empty_texts: int  # pairs of which one text is empty: odd, yet official
    repeated: int  # rows whose texts stand in an earlier row too
    problems: tuple[str, ...]


def check_data(task: Task, data: str | Path) -> list[PartReport]:
    """Every file of the task that is there, read to the end; a missing training or dev file is a problem too."""
    folder = task_folder(task, data)
    reports = []
    for split in SPLITS:
        for file in files_of(task, split).values():
            path = folder / file.name
            if path.is_file():
                reports.append(_check_file(path, task, file))
            elif split != "test":
                reports.append(PartReport(str(path), 0, {}, 0, 0, (f"{path} is missing; expected the official file",)))
    return reports


def _check_file(path: Path, task: Task, file: File) -> PartReport:
    rows: list[Row] = []
    problems: list[str] = []
    try:
        for found in READERS[task.format](path, task, file):
            problems.append(str(found)) if isinstance(found, TaskError) else rows.append(found)
    except TaskError as error:
        problems.append(str(error))
    labels = Counter(_label_name(row, task) for row in rows) if file.labelled else {}
    return PartReport(
        str(path),
        len(rows),
        dict(sorted(labels.items())),
        sum(not all(row.texts) for row in rows),
        len(rows) - len({row.texts for row in rows}),
        tuple(problems),
    )


def _label_name(row: Row, task: Task) -> str:
    if isinstance(row, QuestionRow):
        return "answer" if row.answers else "no answer"
    assert row.label is not None
    if task.kind == "regression":
        return f"{int(row.label)} to {int(row.label) + 1}" if row.label < SCORE_RANGE[1] else f"{SCORE_RANGE[1]:g}"
    return task.labels[int(row.label)]
