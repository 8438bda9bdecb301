"""D1: corpora and task files that are not what they should be. The cases are those of the readers' own tests."""

import re

from sparsebert.errors import SparseBertError
from sparsebert.tasks.reading import read_rows
from sparsebert.tasks.table import find_task
from sparsebert.text import prepare_corpus
from tests.faults.scorecard.row import Row, Trial, require
from tests.tasks.test_reading import MALFORMED
from tests.text.test_documents import FILES, LINES

_NUM = len(MALFORMED) + len(LINES) + len(FILES)
# Where in the line: a named or counted column, a byte or a character; or, where a row is short or long, its columns.
_COLUMN = re.compile(r"column|columns|byte|character|char \d+|field|header", re.IGNORECASE)


def malformed(trial: Trial) -> None:
    number = trial.number
    if number < len(MALFORMED):
        task, data, line, words = MALFORMED[number]
        name = find_task(task).train.name
        (trial.folder / name).write_bytes(data)
        _check(lambda: read_rows(find_task(task), trial.folder, "train"), name, line, words)
        return
    number -= len(MALFORMED)
    name, data, line, words = (*LINES[number][:4],) if number < len(LINES) else _whole_file(number - len(LINES))
    (trial.folder / name).write_bytes(data)
    out = trial.folder / "corpus"
    files = [str(trial.folder / name)]
    _check(lambda: prepare_corpus(files, out, model="scratch:tiny", train_vocab=120, workers=1), name, line, words)


def _whole_file(number: int) -> tuple[str, bytes, int, str]:
    name, data, words = FILES[number]
    return name, data, 0, words


def _check(read: object, name: str, line: int, words: str) -> None:
    try:
        read()  # type: ignore[operator]
    except SparseBertError as error:
        said = str(error)
    else:
        require(False, f"{name}: read as if nothing were wrong ({words})")
        return
    require(name in said and words in said, f"{name}: {words!r} expected in {said!r}")
    if line:
        require(f"line {line}" in said, f"{name}: line {line} expected in {said!r}")
        # Of these the whole line is the place.
        if any(phrase in said for phrase in ("but not an object", "document of one sentence", "nested too deeply")):
            return
        require(_COLUMN.search(said.split(f"line {line}", 1)[1]), f"{name}: no column in {said!r}")


ROWS = [
    Row(
        "D1",
        "malformed corpora and task files (whole-file damage has no line to name)",
        "60/60 error with file, line, column; 0 silent",
        _NUM,
        malformed,
        chunk=20,
        unit="files",
    )
]
