"""The official SWAG files: real CSV, where quotes do quote; rows may span lines."""

import csv
from collections.abc import Iterator
from pathlib import Path

from sparsebert.errors import TaskError
from sparsebert.tasks.files.cells import label_of, own_number
from sparsebert.tasks.files.rows import ChoiceRow, Reading
from sparsebert.tasks.files.text_lines import FilePlace, decode, raw_lines
from sparsebert.tasks.table import NUM_ENDINGS, File, Task


def read_csv(path: Path, task: Task, file: File) -> Reading:
    """Rows and problems; a file whose quotes or bytes cannot be followed ends with the problem."""
    records = _records(path)
    place, header = next(records)
    if tuple(header) != file.columns:
        raise place.error(f"the header {header[:12]}", f"{list(file.columns)}")
    seen: dict[str, int] = {}
    while True:
        try:
            record = next(records, None)
            if record is None:
                return
            yield _row(*record, task, file, seen)
        except TaskError as error:
            yield error  # after a broken quote there are no more records


def _records(path: Path) -> Iterator[tuple[FilePlace, list[str]]]:
    lines = [decode(line, place) + "\n" for place, line in raw_lines(path)]
    reader = csv.reader(lines, strict=True)
    while True:
        place = FilePlace(path, reader.line_num + 1)  # where the record begins; a cell may hold line feeds
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            # Nobody knows where the next row begins.
            at = _broken_quote("".join(lines[place.line - 1 :]))
            raise place.error(
                f"a row that is not CSV ({error}) at character {at}", "cells in balanced quotes"
            ) from error
        yield place, cells


def _broken_quote(text: str) -> int:
    """The character, from 1, of a quote that never closes, or of what stands between a closed one and the comma."""
    at = 0
    while at < len(text):
        if text[at] == '"':
            closes = text.find('"', at + 1)
            while closes >= 0 and text[closes + 1 : closes + 2] == '"':  # two quotes in a cell stand for one
                closes = text.find('"', closes + 2)
            if closes < 0:
                return at + 1
            at = closes + 1
            if text[at : at + 1] not in (",", "\n", ""):
                return at + 1
        ends = [place for place in (text.find(",", at), text.find("\n", at)) if place >= 0]
        at = min(ends, default=len(text)) + 1
    return 1


def _row(place: FilePlace, cells: list[str], task: Task, file: File, seen: dict[str, int]) -> ChoiceRow:
    if len(cells) != len(file.columns):
        raise place.error(f"{len(cells)} columns", f"{len(file.columns)}: {', '.join(file.columns[1:])} after a number")
    values = dict(zip(file.columns, cells, strict=True))
    number = own_number(values[""], place.in_column("1"), seen)
    endings = tuple(values[f"ending{index}"].strip() for index in range(NUM_ENDINGS))
    if not all(endings):
        raise place.in_column(f"ending{endings.index('')}").value_error("", "an ending")
    context, start = values["sent1"].strip(), values["sent2"].strip()
    if not context and not start:
        raise place.in_column("sent1").value_error("", "a beginning in sent1 or sent2")
    label = int(label_of(values["label"], task, place)) if file.labelled else None
    return ChoiceRow(number, context, start, endings, label)
