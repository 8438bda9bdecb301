"""The built-in rows as official files: laid out, named and spelled like the real ones."""

import csv
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sparsebert import draws
from sparsebert.files import synced_together, write_atomic, write_json
from sparsebert.tasks.builtin.sentences import MAKERS
from sparsebert.tasks.files.reading import Split, files_of
from sparsebert.tasks.files.rows import ChoiceRow, QuestionRow, Row, TextRow
from sparsebert.tasks.table import TASKS, File, Task

BUILTIN = "builtin:tasks"
_SIZES: dict[Split, int] = {"train": 192, "dev": 48, "test": 24}
_FILLER = "x"  # columns that no task reads


def write_builtin(folder: Path, *, seed: int = 0, tasks: Sequence[str] | None = None) -> Path:
    """Write the files under the folder, laid out like the official ones; the same seed gives the same bytes."""
    with synced_together():
        for name in tasks or TASKS:
            _write_task(Path(folder), TASKS[name], seed)
    return Path(folder)


def _write_task(folder: Path, task: Task, seed: int) -> None:
    first = 0
    for split, count in _SIZES.items():
        for section, file in files_of(task, split).items():
            rows = builtin_rows(task, first, count, seed)
            first += len(rows)
            path = folder / task.folders[0] / file.name
            _WRITERS[task.format](path, task, file, rows, f"{split} {section}".strip())


def builtin_rows(task: Task, first: int, count: int, seed: int) -> list[Row]:
    """Rows first ... first + count - 1 of an endless list; each is drawn by itself."""
    return [
        MAKERS[task.name](draws.generator(seed, f"tasks/builtin/{task.name}", row=number), number)
        for number in range(first, first + count)
    ]


def write_tsv(path: Path, task: Task, file: File, rows: Sequence[Row], _title: str = "") -> None:
    lines = ["\t".join(file.columns)] if file.header else []
    for number, row in enumerate(rows):
        assert isinstance(row, TextRow)
        values = {"index": str(number), "id": str(number), task.text[0]: row.first, "annotation": ""}
        if row.second is not None:
            values[task.text[1]] = row.second
        if file.labelled:
            assert row.label is not None
            values[task.label] = task.spelled(row.label)
            # MNLI's files repeat what each of the annotators said.
            values |= {column: values[task.label] for column in file.columns if column.startswith("label")}
        lines.append("\t".join(values.get(column, _FILLER) for column in file.columns))
    write_atomic(path, ("\n".join(lines) + "\n").encode())


def write_csv(path: Path, task: Task, file: File, rows: Sequence[Row], _title: str = "") -> None:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(file.columns)
    for number, row in enumerate(rows):
        assert isinstance(row, ChoiceRow)
        values = {
            "": str(number),
            "startphrase": f"{row.context} {row.start}".strip(),
            "sent1": row.context,
            "sent2": row.start,
            "gold-source": "gold",
            "label": "" if row.label is None else task.labels[row.label],
            **{f"ending{index}": ending for index, ending in enumerate(row.endings)},
        }
        writer.writerow([values.get(column, _FILLER) for column in file.columns])
    write_atomic(path, buffer.getvalue().encode())


def write_squad(path: Path, task: Task, file: File, rows: Sequence[Row], title: str = "") -> None:
    """One paragraph a context."""
    paragraphs: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        assert isinstance(row, QuestionRow)
        fields: dict[str, Any] = {"id": row.id, "question": row.question}
        if file.labelled:
            fields["answers"] = [{"text": answer.text, "answer_start": answer.start} for answer in row.answers]
        if file.labelled and task.with_no_answer:
            fields["is_impossible"] = not row.answers
        paragraphs.setdefault(row.context, []).append(fields)
    held = [{"context": context, "qas": questions} for context, questions in paragraphs.items()]
    version = "v2.0" if task.with_no_answer else "1.1"
    write_json(path, {"version": version, "data": [{"title": title, "paragraphs": held}]})


_Writer = Callable[[Path, Task, File, Sequence[Row], str], None]
_WRITERS: dict[str, _Writer] = {"tsv": write_tsv, "csv": write_csv, "json": write_squad}
