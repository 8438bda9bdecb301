"""Rows of a task from its official files, all or a stated subset; and a check that reports instead of raising."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from sparsebert import draws
from sparsebert.errors import TaskError
from sparsebert.tasks.glue import read_tsv
from sparsebert.tasks.rows import ChoiceRow, QuestionRow, Reading, Row, TextRow
from sparsebert.tasks.squad import read_squad
from sparsebert.tasks.swag import read_csv
from sparsebert.tasks.table import File, Format, Task

Split = Literal["train", "dev", "test"]
Item = TypeVar("Item")

_READERS: dict[Format, Callable[[Path, Task, File], Reading]] = {"tsv": read_tsv, "csv": read_csv, "json": read_squad}
HUB = "hub:"  # before a dataset id


def files_of(task: Task, split: Split) -> dict[str, File]:
    """Section to file; a split of one part has the section ""."""
    return {"": task.train} if split == "train" else dict(task.dev if split == "dev" else task.test)


def task_folder(task: Task, data: str | Path) -> Path:
    """Where under the data folder the task's training or dev file lies."""
    wanted = [task.train.name, *(file.name for file in task.dev.values())]
    for folder in task.folders:
        if any((Path(data) / folder / name).is_file() for name in wanted):
            return Path(data) / folder
    looked = ", ".join(str(Path(data) / folder / wanted[0]) for folder in task.folders)
    raise TaskError(f"no files of {task.title} under {data}; expected one of {looked}")


def read_rows(
    task: Task, data: str | Path, split: Split, section: str = "", *, skip_bad_rows: bool = False
) -> list[Row]:
    """Every row of one part; raises at the first problem, or leaves bad rows out when told to."""
    if str(data).startswith(HUB):
        from sparsebert.tasks.hub import read_hub

        return read_hub(task, str(data).removeprefix(HUB), split, section)
    path, file = part_path(task, data, split, section), files_of(task, split)[section]
    rows = read_file(path, task, file, skip_bad_rows=skip_bad_rows)
    if not rows:
        raise TaskError(f"{path} holds no rows; expected the official file")
    return rows


def part_path(task: Task, data: str | Path, split: Split, section: str = "") -> Path:
    return task_folder(task, data) / files_of(task, split)[section].name


def has_part(task: Task, data: str | Path, split: Split, section: str = "") -> bool:
    """Whether the file is there; on a hub only what is labelled counts."""
    return split != "test" if str(data).startswith(HUB) else part_path(task, data, split, section).is_file()


def read_file(path: Path, task: Task, file: File, *, skip_bad_rows: bool = False) -> list[Row]:
    rows: list[Row] = []
    for found in _READERS[task.format](path, task, file):
        if isinstance(found, TaskError):
            if not skip_bad_rows:
                raise found
        else:
            rows.append(found)
    return rows


def subset(rows: list[Item], max_rows: int | None, seed: int = 0) -> list[Item]:
    """At most so many rows, drawn by the seed, in their own order."""
    if max_rows is None or max_rows >= len(rows):
        return rows
    if max_rows < 1:
        raise TaskError(f"asked for {max_rows} rows; at least 1 is needed")
    chosen = draws.generator(seed, "tasks/subset").choice(len(rows), max_rows, replace=False)
    return [rows[index] for index in sorted(chosen)]


@dataclass(frozen=True)
class PartReport:
    """What a file holds, and what is wrong with it."""

    path: str
    num_rows: int
    labels: dict[str, int]  # rows of each label
    empty_texts: int  # pairs of which one text is empty: odd, yet official
    repeated: int  # rows whose texts stand in an earlier row too
    problems: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        return {**self.__dict__, "problems": list(self.problems)}


def check_data(task: Task, data: str | Path) -> list[PartReport]:
    """Every file of the task that is there, read to the end; a missing training or dev file is a problem too."""
    splits: tuple[Split, ...] = ("train", "dev", "test")
    parts = [(split, section, file) for split in splits for section, file in files_of(task, split).items()]
    folder = task_folder(task, data)
    reports = []
    for split, _, file in parts:
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
        for found in _READERS[task.format](path, task, file):
            problems.append(str(found)) if isinstance(found, TaskError) else rows.append(found)
    except TaskError as error:
        problems.append(str(error))
    texts = [_texts(row) for row in rows]
    return PartReport(
        str(path),
        len(rows),
        _label_counts(rows, task) if file.labelled else {},
        sum(not all(pair) for pair in texts),
        len(texts) - len(set(texts)),
        tuple(problems),
    )


def _texts(row: Row) -> tuple[str, ...]:
    if isinstance(row, TextRow):
        return (row.first,) if row.second is None else (row.first, row.second)
    if isinstance(row, ChoiceRow):
        return (row.context, row.start, *row.endings)
    return (row.question, row.context)


def _label_counts(rows: list[Row], task: Task) -> dict[str, int]:
    names: Counter[str] = Counter()
    for row in rows:
        if isinstance(row, QuestionRow):
            names["answer" if row.answers else "no answer"] += 1
        elif task.kind == "regression":
            names[f"{int(row.label or 0)} to {int(row.label or 0) + 1}" if row.label != 5 else "5"] += 1
        else:
            names[task.labels[int(row.label or 0)]] += 1
    return dict(sorted(names.items()))
