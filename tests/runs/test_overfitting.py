"""A model that has learned its training rows by heart answers them: spans, windows and decoding fit together."""

from pathlib import Path

import pytest

from sparsebert.runs import FinetuneRun
from sparsebert.tasks.builtin import builtin_rows
from sparsebert.tasks.builtin.writing import write_squad
from sparsebert.tasks.files.rows import Answer, QuestionRow
from sparsebert.tasks.table import find_task


def _long_rows(count: int) -> list[QuestionRow]:
    """Questions whose context takes several windows; the answer lies in a different part of each."""
    task = find_task("squad1")
    rows = [row for row in builtin_rows(task, 0, 5 * count, 0) if isinstance(row, QuestionRow)]
    joined = []
    for index in range(count):
        parts = rows[5 * index : 5 * index + 5]
        asked = parts[index % 5]
        before = " ".join(part.context for part in parts[: index % 5])
        shift = len(before) + (1 if before else 0)
        answer = Answer(asked.answers[0].text, asked.answers[0].start + shift)
        context = " ".join(part.context for part in parts)
        joined.append(QuestionRow(asked.id, asked.question, context, (answer,)))
    return joined


@pytest.mark.long
def test_a_small_model_answers_its_own_training_rows(tmp_path: Path) -> None:
    task, rows = find_task("squad1"), _long_rows(8)
    for file in (task.train, task.dev[""]):
        write_squad(tmp_path / "data" / file.name, task, file, rows)
    run = FinetuneRun(
        *("squad1", str(tmp_path / "data"), "scratch:tiny"),
        length=96,
        stride=40,
        batch_size=8,
        num_epochs=50,
        learning_rate=1e-3,
        pattern="longformer",
    )
    result = run.make(tmp_path / "run")
    assert result.fields["metrics"]["f1"] >= 95
