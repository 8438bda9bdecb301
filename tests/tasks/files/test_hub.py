"""Hub tables are held to the same rules as official files."""

import pytest

from sparsebert.errors import TaskError
from sparsebert.tasks.files.hub import rows_of
from sparsebert.tasks.files.rows import Answer, ChoiceRow, QuestionRow, TextRow
from sparsebert.tasks.table import find_task


def test_records_become_the_rows_that_official_files_give() -> None:
    record = {"premise": "a", "hypothesis": "b", "label": 2, "idx": 7}
    assert rows_of(find_task("mnli"), [record], "hub") == [TextRow("7", "a", "b", 0)]
    record = {"sentence1": "a", "sentence2": "b", "label": 3.8, "idx": 0}
    assert rows_of(find_task("stsb"), [record], "hub") == [TextRow("0", "a", "b", 3.8)]
    endings = {f"ending{index}": f"e{index}" for index in range(4)}
    found = rows_of(find_task("swag"), [{"sent1": "a", "sent2": "b", "label": 3, **endings}], "hub")
    assert found == [ChoiceRow("0", "a", "b", ("e0", "e1", "e2", "e3"), 3)]
    answers = {"text": ["Anna"], "answer_start": [0]}
    record = {"id": "q", "question": "Who?", "context": "Anna.", "answers": answers}
    assert rows_of(find_task("squad1"), [record], "hub") == [QuestionRow("q", "Who?", "Anna.", (Answer("Anna", 0),))]


@pytest.mark.parametrize(
    ("task", "record"),
    [
        ("rte", {"sentence1": None, "sentence2": "b", "label": 0}),
        ("rte", {"sentence1": "a", "sentence2": "b", "label": -1}),
        ("rte", {"sentence1": "a", "sentence2": "b", "label": None}),
        ("rte", {"sentence1": "a", "label": 0}),
        ("stsb", {"sentence1": "a", "sentence2": "b", "label": 5.5}),
        (
            "squad1",
            {"id": "q", "question": "Who?", "context": "Anna.", "answers": {"text": ["Bo"], "answer_start": [0]}},
        ),
    ],
)
def test_a_bad_record_is_refused_with_its_number(task: str, record: dict[str, object]) -> None:
    with pytest.raises(TaskError, match="hub, row 0"):
        rows_of(find_task(task), [record], "hub")
