"""Files for the evaluation servers: the zip of GLUE's TSVs, SQuAD's JSON, SWAG's CSV; equal inputs, equal bytes."""

import io
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sparsebert.errors import TaskError
from sparsebert.files import canonical_json, write_atomic
from sparsebert.tasks.files.reading import has_part, read_rows
from sparsebert.tasks.folder import open_settings
from sparsebert.tasks.prediction import Predictor
from sparsebert.tasks.table import GLUE, TASKS

# The server refuses a zip without these two; the paper reports neither, so every row gets the same label.
PLACEHOLDERS = {"WNLI.tsv": ("0", 146), "AX.tsv": ("entailment", 1104)}
_LONG_AGO = (1980, 1, 1, 0, 0, 0)  # the time of every file in the zip, so that equal predictions give equal bytes


@dataclass(frozen=True)
class Submission:
    """What was written, and what its reader should know."""

    path: Path
    files: dict[str, int]  # name -> rows
    notes: tuple[str, ...]


def write_submission(
    runs: Sequence[str | Path], data: str | Path, out: Path, *, max_rows: int | None = None
) -> Submission:
    """Predict the test rows of every run's task, or the dev rows (labels unseen) where there is no test file.

    max_rows: only the first rows of each part, to try the way out; no server takes such a file.
    """
    names = [open_settings(run).task for run in runs]
    twice = {name for name in names if names.count(name) > 1}
    if twice or not runs:
        raise TaskError(f"a submission takes one run a task, yet {', '.join(twice) or 'none'} came; pass one of each")
    if all(name in GLUE for name in names):
        return _glue(runs, names, data, out, max_rows)
    if len(runs) > 1:
        raise TaskError(f"{', '.join(names)} do not go to one server; write GLUE, SWAG and SQuAD files one by one")
    return _single(runs[0], data, out, max_rows)


def _glue(
    runs: Sequence[str | Path], names: Sequence[str], data: str | Path, out: Path, max_rows: int | None
) -> Submission:
    files: dict[str, list[str]] = {}
    notes = [f"{name}: {label!r} for all {rows} rows, a placeholder" for name, (label, rows) in PLACEHOLDERS.items()]
    for run in runs:
        predictor = Predictor(run)
        for section, name in predictor.task.submission.items():
            predicted, note = _predicted(predictor, data, section, max_rows)
            files[name] = [f"{number}\t{label}" for number, label in predicted]
            notes += note
    for name, (label, count) in PLACEHOLDERS.items():
        files[name] = [f"{index}\t{label}" for index in range(count)]
    missing = [TASKS[name].title for name in GLUE if name not in names]
    if missing:
        notes.append(f"the server also wants {', '.join(missing)}; pass a run of each")
    write_atomic(out, _zipped({name: "\n".join(["index\tprediction", *lines]) + "\n" for name, lines in files.items()}))
    return Submission(out, {name: len(lines) for name, lines in files.items()}, tuple(notes))


def _single(run: str | Path, data: str | Path, out: Path, max_rows: int | None) -> Submission:
    predictor = Predictor(run)
    predicted, note = _predicted(predictor, data, "", max_rows)
    if predictor.task.kind == "span":
        text = canonical_json(dict(predicted)) + "\n"
    else:
        text = "\n".join(["id,pred", *(f"{number},{label}" for number, label in predicted)]) + "\n"
    write_atomic(out, text.encode())
    return Submission(out, {out.name: len(predicted)}, tuple(note))


def _predicted(
    predictor: Predictor, data: str | Path, section: str, max_rows: int | None
) -> tuple[list[tuple[str, str]], list[str]]:
    """Labels by the numbers of the test rows; where their file is absent of the dev rows, with a note that says so."""
    task = predictor.task
    has_test = has_part(task, data, "test", section)
    rows = read_rows(task, data, "test" if has_test else "dev", section)[:max_rows]
    where = f"{task.title} {section}".strip()
    note = [] if has_test else [f"{where}: no test file, predicted {len(rows)} dev rows, labels unseen"]
    return list(zip((row.id for row in rows), predictor.labels(rows), strict=True)), note


def _zipped(texts: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(texts):
            entry = zipfile.ZipInfo(name, _LONG_AGO)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, texts[name])
    return buffer.getvalue()
