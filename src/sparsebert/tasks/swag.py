"""The official SWAG files: real CSV, where quotes do quote; rows may span lines."""

import csv
from collections.abc import Iterator
from pathlib import Path

from sparsebert.errors import TaskError
from sparsebert.tasks.lines import decoded_lines
from sparsebert.tasks.rows import ChoiceRow, Place, Reading
from sparsebert.tasks.table import File, Task

_NUM_ENDINGS = 4


def read_csv(path: Path, task: Task, file: File) -> Reading:
    """Rows and problems; a file whose quotes or bytes cannot be followed ends with the problem."""
    records = _records(path)
    first = next(records)
    if isinstance(first, TaskError):
        raise first
    if tuple(first[1]) != file.columns:
        raise first[0].error(f"the header {first[1][:12]}", f"{list(file.columns)}")
    seen: dict[str, int] = {}
    for record in records:
        yield record if isinstance(record, TaskError) else _row(*record, task, file, seen)


def _records(path: Path) -> Iterator[tuple[Place, list[str]] | TaskError]:
    lines = []
    for _, line in decoded_lines(path):
        if isinstance(line, TaskError):
            raise line
        lines.append(line + "\n")
    reader = csv.reader(lines, strict=True)
    while True:
        place = Place(path, reader.line_num + 1)  # where the record begins; a cell may hold line feeds
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            # After a broken quote nobody knows where the next row begins.
            at = _broken_quote("".join(lines[place.line - 1 :]))
            yield place.error(f"a row that is not CSV ({error}) at character {at}", "cells in balanced quotes")
            return
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


def _row(place: Place, cells: list[str], task: Task, file: File, seen: dict[str, int]) -> ChoiceRow | TaskError:
    if len(cells) != len(file.columns):
        return place.error(
            f"{len(cells)} columns", f"{len(file.columns)}: {', '.join(file.columns[1:])} after a number"
        )
    values = dict(zip(file.columns, cells, strict=True))
    number = values[""]
    if number in seen or not number:
        other = f"each number once; line {seen[number]} has it too" if number else "the row's number"
        return Place(place.path, place.line, "1").value_error(number, other)
    seen[number] = place.line
    endings = tuple(values[f"ending{index}"].strip() for index in range(_NUM_ENDINGS))
    for index, ending in enumerate(endings):
        if not ending:
            return Place(place.path, place.line, f"ending{index}").value_error(ending, "an ending")
    if not values["sent1"].strip() and not values["sent2"].strip():
        return Place(place.path, place.line, "sent1").value_error("", "a beginning in sent1 or sent2")
    label = None
    if file.labelled:
        if values["label"] not in task.labels:
            return Place(place.path, place.line, "label").value_error(
                values["label"], f"one of {', '.join(task.labels)}"
            )
        label = task.labels.index(values["label"])
    return ChoiceRow(number, values["sent1"].strip(), values["sent2"].strip(), endings, label)
