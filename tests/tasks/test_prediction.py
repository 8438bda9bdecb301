"""A fine-tuned folder answers the same for a row alone or in any company, and opens in transformers."""

import json
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import sparsebert
from sparsebert.errors import FileError, TaskError
from sparsebert.files import read_json, write_json
from sparsebert.tasks.files.reading import read_rows
from sparsebert.tasks.files.rows import QuestionRow, TextRow
from sparsebert.tasks.files.rows_to_predict import read_inputs, read_lines
from sparsebert.tasks.prediction import Predictor
from sparsebert.tasks.scoring.evaluation import item_scores
from sparsebert.tasks.submission import PLACEHOLDERS, write_submission
from sparsebert.tasks.table import TASKS, find_task

Runs = Callable[[str], Path]


@pytest.mark.parametrize("task", ["rte", "stsb", "swag", "squad2"])
def test_scores_do_not_depend_on_the_batch(tiny_run: Runs, builtin_data: Path, task: str) -> None:
    predictor = Predictor(tiny_run(task))
    rows = read_rows(predictor.task, builtin_data, "dev")[:12]
    scores = partial(item_scores, predictor.model, predictor.task)
    alone = [scores(predictor.items([row]))[0] for row in rows]
    for batch_size in (1, 5, 12):
        together = scores(predictor.items(rows), batch_size)
        for one, other in zip(alone, together, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-5, rtol=0)
    assert list(predictor.predict(rows))[3]["id"] == rows[3].id


@pytest.mark.parametrize("precision", ["fp32", "int8"])
@pytest.mark.parametrize("task", ["rte", "stsb", "swag", "squad2"])
def test_rows_without_padding_get_the_same_scores(
    tiny_run: Runs, builtin_data: Path, task: str, precision: str
) -> None:
    predictor = Predictor(tiny_run(task), precision=precision)
    items = predictor.items(read_rows(predictor.task, builtin_data, "dev")[:12])
    assert predictor.packs == (task != "swag")
    padded = item_scores(predictor.model, predictor.task, items)
    packed = item_scores(predictor.model, predictor.task, items, packed=predictor.packs)
    for one, other in zip(padded, packed, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5, rtol=0)


def test_a_classification_is_a_label_with_probabilities(tiny_run: Runs) -> None:
    predictor = Predictor(tiny_run("mnli"))
    (found,) = predictor.predict([TextRow("7", "so Anna built it", "perhaps")])
    assert found["id"] == "7"
    assert set(found["probabilities"]) == {"contradiction", "entailment", "neutral"}
    assert sum(found["probabilities"].values()) == pytest.approx(1, abs=1e-5)
    assert found["label"] == max(found["probabilities"], key=found["probabilities"].get)


def test_a_regression_is_a_score_in_its_range(tiny_run: Runs) -> None:
    (found,) = Predictor(tiny_run("stsb")).predict([TextRow("0", "a", "b")])
    assert 0 <= found["score"] <= 5


def test_an_answer_is_a_span_of_its_context(tiny_run: Runs) -> None:
    context = "The mill was built by Anna in Oslo."
    (found,) = Predictor(tiny_run("squad1")).predict([QuestionRow("q", "Who made the mill?", context)])
    assert found["answer"] == context[found["start"] :][: len(found["answer"])]
    assert found["candidates"][0]["text"] == found["answer"]


def test_more_rows_than_a_chunk_keep_their_order(tiny_run: Runs) -> None:
    predictor = Predictor(tiny_run("sst2"))
    rows = (TextRow(str(number), f"film {number}") for number in range(600))
    assert [found["id"] for found in predictor.predict(rows)] == [str(number) for number in range(600)]


def test_transformers_opens_the_folder_by_itself(tiny_run: Runs) -> None:
    from transformers import pipeline

    folder = tiny_run("mrpc") / "model"
    classify = pipeline("text-classification", model=str(folder))
    assert classify.model.pattern == sparsebert.patterns.star(128, 2)
    pair = {"text": "it was reported that Anna built the red mill", "text_pair": "Anna denied it in Oslo"}
    (ours,) = Predictor(folder).predict([TextRow("0", pair["text"], pair["text_pair"])])
    theirs = classify(pair)
    assert theirs["label"] == ours["label"]
    assert theirs["score"] == pytest.approx(ours["probabilities"][ours["label"]], abs=1e-5)


def test_the_card_names_task_metric_and_sparsity(tiny_run: Runs) -> None:
    card = (tiny_run("rte") / "model" / "README.md").read_text()
    for words in ("RTE", "accuracy", "96.13 %"):
        assert words in card


def test_a_folder_that_is_no_fine_tuned_model_is_refused(tmp_path: Path, tiny_run: Runs) -> None:
    with pytest.raises(TaskError, match="no fine-tuned model"):
        Predictor(tmp_path)
    write_json(tmp_path / "task.json", {"task": "rte"})
    with pytest.raises(TaskError, match="does not describe a task"):
        Predictor(tmp_path)


def test_another_vocabulary_is_noticed(tmp_path: Path, tiny_run: Runs) -> None:
    import shutil

    shutil.copytree(tiny_run("rte") / "model", tmp_path / "model")
    shutil.copy(tiny_run("cola") / "model" / "tokenizer.json", tmp_path / "model" / "tokenizer.json")
    with pytest.raises(TaskError, match="not the vocabulary"):
        Predictor(tmp_path)


def test_lines_are_texts_or_objects() -> None:
    lines = [b"one\ttwo\n", b'{"sentence1": "a", "sentence2": "\\u00e9", "id": 5}\r\n']
    assert list(read_lines(lines, find_task("rte"), Path("-"))) == [TextRow("0", "one", "two"), TextRow("5", "a", "é")]
    question = b'{"question": "Who?", "context": "Anna."}'
    assert list(read_lines([question], find_task("squad1"), Path("-"))) == [QuestionRow("0", "Who?", "Anna.")]


@pytest.mark.parametrize(
    ("task", "line", "words"),
    [
        ("rte", b"only one\n", "two sentences"),
        ("sst2", b"\n", "a sentence"),
        ("sst2", b"\xff\n", "UTF-8"),
        ("sst2", b'{"sentence": 3}', "column 'sentence'"),
        ("sst2", b'{"sentence": "\\ud800"}', "expected text"),
        ("sst2", b'{"sentence": ', "not JSON"),
        ("squad1", b"Who?\tAnna.", "question, context"),
        ("swag", b'{"sent1": "a"}', "sent2"),
    ],
)
def test_a_line_that_cannot_be_predicted_is_named(task: str, line: bytes, words: str) -> None:
    with pytest.raises(TaskError, match=words) as caught:
        list(read_lines([line], find_task(task), Path("lines.txt")))
    assert "lines.txt, line 1" in str(caught.value)


@pytest.mark.parametrize("task", TASKS)
def test_official_files_with_and_without_labels_can_be_predicted(builtin_data: Path, task: str) -> None:
    about = find_task(task)
    for file in (about.train, *about.dev.values(), *about.test.values()):
        assert read_inputs(builtin_data / about.folders[0] / file.name, about)


def test_a_glue_submission_has_the_names_and_headers_of_the_server(
    tiny_run: Runs, builtin_data: Path, tmp_path: Path
) -> None:
    written = write_submission([tiny_run("mnli"), tiny_run("stsb"), tiny_run("cola")], builtin_data, tmp_path / "g.zip")
    with zipfile.ZipFile(tmp_path / "g.zip") as archive:
        texts = {name: archive.read(name).decode().splitlines() for name in archive.namelist()}
    assert set(texts) == {"MNLI-m.tsv", "MNLI-mm.tsv", "STS-B.tsv", "CoLA.tsv", *PLACEHOLDERS}
    assert all(lines[0] == "index\tprediction" for lines in texts.values())
    assert (len(texts["AX.tsv"]), len(texts["WNLI.tsv"]), len(texts["CoLA.tsv"])) == (1105, 147, 25)
    assert [line.split("\t")[0] for line in texts["MNLI-m.tsv"][1:]] == [str(number) for number in range(24)]
    assert {line.split("\t")[1] for line in texts["MNLI-m.tsv"][1:]} <= {"contradiction", "entailment", "neutral"}
    assert all(0 <= float(line.split("\t")[1]) <= 5 for line in texts["STS-B.tsv"][1:])
    notes = " ".join(written.notes)
    assert "placeholder" in notes
    assert "QQP" in notes


def test_equal_submissions_are_equal_bytes(tiny_run: Runs, builtin_data: Path, tmp_path: Path) -> None:
    for name in ("a.zip", "b.zip"):
        write_submission([tiny_run("cola")], builtin_data, tmp_path / name)
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()


def test_without_a_test_file_dev_rows_are_predicted_and_that_is_said(
    tiny_run: Runs, builtin_data: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "glue" / "RTE"
    folder.mkdir(parents=True)
    for name in ("train.tsv", "dev.tsv"):
        (folder / name).write_bytes((builtin_data / "glue" / "RTE" / name).read_bytes())
    written = write_submission([tiny_run("rte")], tmp_path, tmp_path / "g.zip")
    assert written.files["RTE.tsv"] == 48
    assert any("no test file" in note for note in written.notes)


def test_a_squad_submission_is_one_answer_a_question(tiny_run: Runs, builtin_data: Path, tmp_path: Path) -> None:
    write_submission([tiny_run("squad2")], builtin_data, tmp_path / "s.json")
    answers = read_json(tmp_path / "s.json")
    rows = read_rows(find_task("squad2"), builtin_data, "test")
    assert set(answers) == {row.id for row in rows}
    assert all(isinstance(answer, str) for answer in answers.values())


def test_a_swag_submission_is_one_choice_a_row(tiny_run: Runs, builtin_data: Path, tmp_path: Path) -> None:
    write_submission([tiny_run("swag")], builtin_data, tmp_path / "s.csv")
    lines = (tmp_path / "s.csv").read_text().splitlines()
    assert lines[0] == "id,pred"
    assert len(lines) == 25


def test_runs_of_one_task_or_of_two_servers_are_refused(tiny_run: Runs, builtin_data: Path, tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="one run a task"):
        write_submission([tiny_run("rte"), tiny_run("rte")], builtin_data, tmp_path / "g.zip")
    with pytest.raises(TaskError, match="one server"):
        write_submission([tiny_run("rte"), tiny_run("swag")], builtin_data, tmp_path / "g.zip")


def test_predictions_are_one_json_object_a_line(tiny_run: Runs, tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from sparsebert.cli import app

    (tmp_path / "in.txt").write_text("a lovely film\nan awful film\n")
    done = CliRunner().invoke(app, ["predict", str(tiny_run("sst2")), "--file", str(tmp_path / "in.txt")])
    assert done.exit_code == 0
    assert [json.loads(line)["id"] for line in done.output.splitlines()] == ["0", "1"]


def test_a_labelled_file_is_scored(tiny_run: Runs, builtin_data: Path) -> None:
    from typer.testing import CliRunner

    from sparsebert.cli import app

    for task, folder in (("rte", "glue/RTE"), ("squad2", "squad")):
        path = builtin_data / folder / find_task(task).dev[""].name
        done = CliRunner().invoke(app, ["predict", str(tiny_run(task)), "--file", str(path), "--score"])
        assert json.loads(done.output) == read_json(tiny_run(task) / "result.json")["metrics"]
    unlabelled = builtin_data / "glue" / "RTE" / "test.tsv"
    with pytest.raises(TaskError, match="3 columns"):
        read_inputs(unlabelled, find_task("rte"), labelled=True)


@pytest.mark.parametrize("name", ["nope", "."])
def test_a_file_that_cannot_be_read_is_named(name: str, tmp_path: Path) -> None:
    with pytest.raises(FileError, match="cannot read"):
        read_inputs(tmp_path / name, find_task("sst2"))
