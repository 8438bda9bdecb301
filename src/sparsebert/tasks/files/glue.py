"""The official GLUE files: tab-separated, quotes are text, one row a line, nothing missing."""

from pathlib import Path

from sparsebert.errors import TaskError
from sparsebert.tasks.files.cells import label_of, own_number
from sparsebert.tasks.files.rows import Reading, TextRow
from sparsebert.tasks.files.text_lines import FilePlace, decode, raw_lines
from sparsebert.tasks.table import File, Task


def read_tsv(path: Path, task: Task, file: File) -> Reading:
    """Rows and problems in the order of the lines."""
    lines = raw_lines(path)
    if file.header:
        place, line = next(lines)
        _check_header(place, decode(line, place), file)
    seen: dict[str, int] = {}
    for place, line in lines:
        try:
            yield _row(decode(line, place), place, task, file, seen)
        except TaskError as error:
            yield error


def _check_header(place: FilePlace, line: str, file: File) -> None:
    found = tuple(line.split("\t"))
    if found == file.columns:
        return
    if len(found) != len(file.columns):
        raise place.error(f"a header of {len(found)} columns", f"{len(file.columns)}: {', '.join(file.columns)}")
    at = next(index for index in range(len(found)) if found[index] != file.columns[index])
    raise place.error(f"column {at + 1} called {found[at][:80]!r}", f"{file.columns[at]!r}, as in the official header")


def _row(line: str, place: FilePlace, task: Task, file: File, seen: dict[str, int]) -> TextRow:
    cells = line.split("\t")
    if len(cells) != len(file.columns):
        raise place.error(
            f"{len(cells)} columns in {line[:60]!r}", f"{len(file.columns)}: {', '.join(file.columns)}, tabs in between"
        )
    values = dict(zip(file.columns, cells, strict=True))
    # Official SST-2 sentences end in a space; spaces around a sentence mean nothing to any task.
    texts = [values[column].strip(" ") for column in task.text]
    if not any(texts):
        where = place.in_column(task.text[0])
        raise where.value_error("", "a sentence") if len(texts) == 1 else where.error("no text at all", "a sentence")
    # The row's own number where its file has one, else its place among the rows.
    column = task.id or ("index" if "index" in file.columns else None)
    number = str(place.line - 1 - file.header)
    return TextRow(
        id=number if column is None else own_number(values[column], place.in_column(column), seen),
        first=texts[0],
        second=texts[1] if len(texts) == 2 else None,
        label=label_of(values[task.label], task, place) if file.labelled else None,
    )
