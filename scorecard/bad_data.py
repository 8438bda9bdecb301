"""D1: corpora and task files that are not what they should be. The cases are those of the readers' own tests."""

import re
from collections.abc import Callable, Sequence

from scorecard.row import FailedTrialError, Figures, Row, Trial, require
from sparsebert.errors import SparseBertError
from sparsebert.tasks.files.reading import read_rows
from sparsebert.tasks.table import find_task
from sparsebert.text import prepare_corpus
from tests.tasks.files.test_reading import MALFORMED
from tests.text.test_documents import FILES, LINES

_NUM = len(MALFORMED) + len(LINES) + len(FILES)
# Where in the line: a named or counted column, a byte or a character; or, where a row is short or long, its columns.
_COLUMN = re.compile(r"column|columns|byte|character|char \d+|field|header", re.IGNORECASE)


# Of these the whole line is the place.
_WHOLE_LINE = ("but not an object", "document of one sentence", "nested too deeply", "nested without end")


def malformed(trial: Trial) -> Figures:
    number = trial.number
    if number < len(MALFORMED):
        task, data, line, words = MALFORMED[number]
        name = find_task(task).train.name
        (trial.folder / name).write_bytes(data)
        return _check(lambda: read_rows(find_task(task), trial.folder, "train"), name, line, words)
    number -= len(MALFORMED)
    name, data, line, words = (*LINES[number][:4],) if number < len(LINES) else _whole_file(number - len(LINES))
    (trial.folder / name).write_bytes(data)
    out = trial.folder / "corpus"
    files = [str(trial.folder / name)]
    return _check(
        lambda: prepare_corpus(files, out, model="scratch:tiny", train_vocab=120, workers=1), name, line, words
    )


def _whole_file(number: int) -> tuple[str, bytes, int, str]:
    name, data, words = FILES[number]
    return name, data, 0, words


def _check(read: Callable[[], object], name: str, line: int, words: str) -> Figures:
    try:
        read()
    except SparseBertError as error:
        said = str(error)
    else:
        raise FailedTrialError(f"{name}: read as if nothing were wrong ({words})")
    require(name in said and words in said, f"{name}: {words!r} expected in {said!r}")
    if not line:
        return {"line": 0, "place": 0}
    require(f"line {line}" in said, f"{name}: line {line} expected in {said!r}")
    if any(phrase in said for phrase in _WHOLE_LINE):
        return {"line": 1, "place": 0}
    require(_COLUMN.search(said.split(f"line {line}", 1)[1]), f"{name}: no column in {said!r}")
    return {"line": 1, "place": 1}


def _named(figures: Sequence[Figures]) -> str:
    lines, places = (int(sum(one[name] for one in figures)) for name in ("line", "place"))
    return (
        f"{lines} name the line, {places} of them the column, field, byte or character too; "
        f"of {lines - places} the whole line is at fault, of {len(figures) - lines} the whole file"
    )


ROWS = [
    Row(
        "D1",
        "malformed corpora and task files",
        "60/60 error with file, line, column; 0 silent",
        _NUM,
        malformed,
        chunk=20,
        unit="files",
        words=_named,
    )
]
