"""The same rows from a hub dataset (the extra `datasets`), held to the same rules as the official files."""

from typing import Any

from sparsebert.errors import MissingExtraError, TaskError
from sparsebert.tasks.files.rows import Answer, ChoiceRow, QuestionRow, Row, TextRow
from sparsebert.tasks.table import NUM_ENDINGS, SCORE_RANGE, Task

_SPLITS = {"train": "train", "dev": "validation", "test": "test"}
# What hub datasets call the columns that the official files call otherwise.
_TEXT = {"mrpc": ("sentence1", "sentence2"), "mnli": ("premise", "hypothesis")}
# And the classes that they number in another order.
_LABELS = {"mnli": ("entailment", "neutral", "contradiction")}


def read_hub(task: Task, dataset: str, split: str, section: str = "") -> list[Row]:
    """Rows of `dataset`, or of the task's usual one where the name is "default"."""
    try:
        from datasets import load_dataset
    except ImportError as error:
        raise MissingExtraError("hub data sets need an extra package; pip install 'sparsebert[datasets]'") from error
    name, configuration = task.hub if dataset == "default" else (dataset, task.hub[1])
    part = _SPLITS[split] + (f"_{section}" if section and split != "train" else "")
    try:
        table = load_dataset(name, configuration, split=part)
    except Exception as error:  # the hub library raises errors of several packages
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise TaskError(
            f"hub data set {name!r}, part {part!r}, could not be had ({reason}); use official files"
        ) from error
    return rows_of(task, table, f"{name}/{configuration or ''}/{part}", labelled=split != "test")


def rows_of(task: Task, table: Any, source: str, *, labelled: bool = True) -> list[Row]:
    """Rows of a table of records; anything that is missing or out of range raises with the row's number."""
    rows: list[Row] = []
    for number, record in enumerate(table):
        try:
            rows.append(_row(task, record, number, labelled))
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise TaskError(f"{source}, row {number}: {error}; expected a row of {task.title}") from error
    return rows


def _row(task: Task, record: Any, number: int, labelled: bool) -> Row:
    if task.kind == "span":
        held = record["answers"]
        pairs = zip(held["text"], held["answer_start"], strict=True)
        answers = tuple(Answer(_text(text), int(start)) for text, start in pairs)
        context = _text(record["context"])
        for answer in answers:
            if context[answer.start :][: len(answer.text)] != answer.text:
                raise ValueError(f"answer {answer.text[:60]!r} is not at character {answer.start} of the context")
        return QuestionRow(_text(record["id"]), _text(record["question"]), context, answers if labelled else ())
    label = _label(task, record["label"]) if labelled else None
    if task.kind == "choice":
        endings = tuple(_text(record[f"ending{index}"]) for index in range(NUM_ENDINGS))
        chosen = None if label is None else int(label)
        return ChoiceRow(str(number), _text(record["sent1"]), _text(record["sent2"]), endings, chosen)
    texts = [_text(record[column]) for column in _TEXT.get(task.name, task.text)]
    return TextRow(str(record.get("idx", number)), texts[0], texts[1] if len(texts) == 2 else None, label)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"found {value!r} for a text")
    return value


def _label(task: Task, value: Any) -> int | float:
    if task.kind == "regression":
        low, high = SCORE_RANGE
        if not isinstance(value, int | float) or not low <= value <= high:
            raise ValueError(f"found score {value!r}, not from {low:g} to {high:g}")
        return float(value)
    order = _LABELS.get(task.name, task.labels)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < len(order):
        raise ValueError(f"found label {value!r}, not one of 0 to {len(order) - 1}")
    return task.labels.index(order[value])
