"""Rows of a task from its official files, all or a stated subset."""

from collections.abc import Callable
from pathlib import Path
from typing import Literal, TypeVar, get_args

from sparsebert import draws
from sparsebert.errors import TaskError
from sparsebert.tasks.files.glue import read_tsv
from sparsebert.tasks.files.rows import Reading, Row
from sparsebert.tasks.files.squad import read_squad
from sparsebert.tasks.files.swag import read_csv
from sparsebert.tasks.table import File, Format, Task

Split = Literal["train", "dev", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)
Item = TypeVar("Item")

READERS: dict[Format, Callable[[Path, Task, File], Reading]] = {"tsv": read_tsv, "csv": read_csv, "json": read_squad}
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
        from sparsebert.tasks.files.hub import read_hub

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
    for found in READERS[task.format](path, task, file):
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
