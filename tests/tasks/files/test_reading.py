"""Official files are read strictly: every malformed one is named with its line, every odd text survives."""

import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsebert.errors import TaskError
from sparsebert.tasks.builtin import write_builtin
from sparsebert.tasks.builtin.writing import write_csv, write_squad, write_tsv
from sparsebert.tasks.files.checking import check_data
from sparsebert.tasks.files.reading import read_file, read_rows, subset
from sparsebert.tasks.files.rows import Answer, ChoiceRow, QuestionRow, TextRow
from sparsebert.tasks.table import TASKS, find_task

ODD_TEXTS = [
    "NA",
    "null",
    "None",
    "nan",
    'one " quote',
    '"starts quoted',
    "''",
    "🎈🧶 balloons",
    "مرحبا بالعالم",
    "שלום",
    "a\u2028b\u0085c\x0bd",
    "a\rb",
    "\ufeffmark inside",
    "[SEP] [CLS]",
    "#N/A, -, NULL",
]

COLA, STSB, RTE, MNLI, SST2, MRPC = (TASKS[name] for name in ("cola", "stsb", "rte", "mnli", "sst2", "mrpc"))
SWAG, SQUAD1, SQUAD2 = (TASKS[name] for name in ("swag", "squad1", "squad2"))
_STSB_ROW = "{}\tg\tf\ty\to\ts\ts\tone\ttwo\t{}"
_STSB_HEAD = "\t".join(STSB.train.columns)
_SWAG_HEAD = ",".join(SWAG.train.columns)
_SWAG_ROW = "0,v,f,p,He runs.,He,gold,falls.,jumps.,sleeps.,sings.,{}"


def _lines(*lines: str) -> bytes:
    return ("\n".join(lines) + "\n").encode()


def _squad(**changes: object) -> bytes:
    question = {"id": "q", "question": "Who?", "answers": [{"text": "Anna", "answer_start": 0}]} | changes
    return json.dumps({"data": [{"paragraphs": [{"context": "Anna sings.", "qas": [question]}]}]}, indent=1).encode()


# task, bytes of its training file, line that the error must name, words that it must hold
MALFORMED: list[tuple[str, bytes, int, str]] = [
    ("cola", b"", 0, "empty"),
    ("cola", _lines("gj04\t1\t\tfine", "gj04\t1\tshort"), 2, "3 columns"),
    ("cola", _lines("gj04\t1\t\tfine", "gj04\t1\t\ttoo\tlong"), 2, "5 columns"),
    ("cola", _lines("gj04\t2\t\tfine"), 1, "'2'; expected one of 0, 1"),
    ("cola", _lines("gj04\t\t\tfine"), 1, "column 'label'"),
    ("cola", _lines("gj04\tNA\t\tfine"), 1, "'NA'"),
    ("cola", _lines("gj04\t1\t\t "), 1, "column 'sentence'"),
    ("cola", _lines("gj04\t1\t\tfine", "", "gj04\t1\t\tfine"), 2, "1 columns"),
    ("cola", b"gj04\t1\t\tgood\ngj04\t1\t\tb\xff\xfed\n", 2, "UTF-8"),
    ("cola", b"gj04\t1\t\tgood\ngj04\t1\t\tb\x00d\n", 2, "NUL"),
    ("cola", "gj04\t1\t\tgood\n".encode("utf-16"), 1, "UTF-8"),
    ("cola", b"gj04\t1 \t\tspace after the label\n", 1, "'1 '"),
    ("rte", _lines("0\ta\tb\tentailment"), 1, "column 1 called '0'"),
    ("rte", _lines("index\tsentence2\tsentence1\tlabel", "0\ta\tb\tentailment"), 1, "'sentence1'"),
    ("rte", _lines("index\tsentence1\tsentence2", "0\ta\tb"), 1, "3 columns"),
    ("rte", _lines("index\tsentence1\tsentence2\tlabel", "0\ta\tb\tentailment", "0\tc\td\tentailment"), 3, "line 2"),
    ("rte", _lines("index\tsentence1\tsentence2\tlabel", "0\ta\tb\tEntailment"), 2, "'Entailment'"),
    ("rte", _lines("index\tsentence1\tsentence2\tlabel", "\ta\tb\tentailment"), 2, "column 'index'"),
    ("rte", _lines("index\tsentence1\tsentence2\tlabel", "0\t\t\tentailment"), 2, "no text"),
    ("rte", _lines("index\tsentence1\tsentence2\tlabel"), 0, "no rows"),
    ("rte", b"index\tsentence1\tsentence2\tlabel\n0\ta\tb\tentailment\r\n", 2, "entailment\\r"),
    ("mnli", _lines("\t".join(MNLI.train.columns), "0" + "\tx" * 7 + "\ta\tb\t-\t-"), 2, "'-'"),
    ("mnli", _lines("\t".join(MNLI.dev["matched"].columns), "0" + "\tx" * 15), 1, "16 columns"),
    ("stsb", _lines(_STSB_HEAD, _STSB_ROW.format(0, "5.001")), 2, "from 0 to 5"),
    ("stsb", _lines(_STSB_HEAD, _STSB_ROW.format(0, "-0.5")), 2, "from 0 to 5"),
    ("stsb", _lines(_STSB_HEAD, _STSB_ROW.format(0, "nan")), 2, "'nan'"),
    ("stsb", _lines(_STSB_HEAD, _STSB_ROW.format(0, "٣")), 2, "'٣'"),
    ("stsb", _lines(_STSB_HEAD, _STSB_ROW.format(0, "1e0")), 2, "'1e0'"),
    ("stsb", _lines(_STSB_HEAD, _STSB_ROW.format(0, "3,5")), 2, "'3,5'"),
    ("mrpc", _lines("\t".join(MRPC.train.columns), "1\t1\t2\tone\ttwo", '1\t1\t2\t"one', "more"), 3, "4 columns"),
    ("sst2", _lines("label\tsentence", "1\tgood"), 1, "'sentence'"),
    ("swag", _lines(_SWAG_HEAD, _SWAG_ROW.format(4)), 2, "'4'"),
    ("swag", _lines(_SWAG_HEAD, _SWAG_ROW.format(1).replace("jumps.", "")), 2, "ending1"),
    ("swag", _lines(_SWAG_HEAD, _SWAG_ROW.format(1), '1,v,f,p,"He runs,He,gold,a,b,c,d,1'), 3, "not CSV"),
    ("swag", _lines(_SWAG_HEAD, _SWAG_ROW.format(1), '1,v,f,p,"He" runs,He,gold,a,b,c,d,1'), 3, "not CSV"),
    ("swag", _lines(_SWAG_HEAD, _SWAG_ROW.format(1), _SWAG_ROW.format(2)), 3, "line 2 has it too"),
    ("swag", _lines(_SWAG_HEAD, _SWAG_ROW.format(1) + ",more"), 2, "13 columns"),
    ("swag", _lines(_SWAG_HEAD.replace("sent1", "first"), _SWAG_ROW.format(1)), 1, "header"),
    ("swag", _lines(_SWAG_HEAD, _SWAG_ROW.format(1).replace("He runs.,He", ",")), 2, "sent1"),
    ("swag", _lines(_SWAG_HEAD).replace(b"\n", b"\n\xe9"), 2, "UTF-8"),
    ("squad1", b'{"data": [', 1, "not JSON"),
    ("squad1", b'{\n"data": "\xff"}', 2, "UTF-8"),
    ("squad1", b"[1, 2]", 1, "data"),
    ("squad1", b'{"data": [{"title": "t"}]}', 1, "paragraphs"),
    ("squad1", b'{"data": [7]}', 1, "JSON object"),
    ("squad1", _squad(answers=[{"text": "Anna", "answer_start": 1}]), 12, "'nna '"),
    ("squad1", _squad(answers=[{"text": "Anna", "answer_start": -11}]), 12, "answer 'Anna'"),
    ("squad1", _squad(answers=[{"text": "Anna", "answer_start": "0"}]), 12, "whole number"),
    ("squad1", _squad(answers=[]), 8, "no answer to a possible question"),
    ("squad1", _squad(is_impossible=True, answers=[]), 8, "never true in v1.1"),
    ("squad1", _squad(id=None), 8, "id None"),
    ("squad1", _squad(question="\ud800?"), 8, "surrogate"),
    ("squad1", b'{"data": [{"paragraphs": [{"context": "a", "context": "b", "qas": []}]}]}', 1, "twice"),
    ("squad2", _squad(is_impossible=True), 8, "impossible question"),
    ("squad2", _squad(is_impossible="no"), 8, "true or false"),
]


@pytest.mark.parametrize(("name", "data", "line", "words"), MALFORMED)
def test_a_malformed_file_is_refused_with_its_name_line_and_value(
    tmp_path: Path, name: str, data: bytes, line: int, words: str
) -> None:
    task = find_task(name)
    path = tmp_path / task.train.name
    path.write_bytes(data)
    with pytest.raises(TaskError) as caught:
        read_rows(task, tmp_path, "train")
    message = str(caught.value)
    assert str(path) in message
    assert words in message
    assert line == 0 or f"line {line}" in message


def test_a_question_asked_twice_is_refused(tmp_path: Path) -> None:
    row = QuestionRow("q", "Who?", "Anna sings.", (Answer("Anna", 0),))
    write_squad(tmp_path / SQUAD1.train.name, SQUAD1, SQUAD1.train, [row, row])
    with pytest.raises(TaskError, match="each id once"):
        read_rows(SQUAD1, tmp_path, "train")


@pytest.mark.parametrize("text", ODD_TEXTS)
def test_odd_texts_survive_a_round_trip_in_every_layout(tmp_path: Path, text: str) -> None:
    pair = TextRow("0", f"{text}", f"and {text}", 1)
    single = TextRow("0", text, None, 0)
    choice = ChoiceRow("0", f"it: {text}.", "He", (f"a {text}.", "b,c", 'd "e"', "f"), 2)
    question = QuestionRow("0", f"Who {text}?", f"It was {text} there", (Answer(text, 7),))
    for name, row, write in (
        ("rte", pair, write_tsv),
        ("cola", single, write_tsv),
        ("swag", choice, write_csv),
        ("squad1", question, write_squad),
    ):
        if name == "swag" and "\r" in text:
            continue  # CSV knows a bare CR only as the end of a row
        task = find_task(name)
        write(tmp_path / task.train.name, task, task.train, [row])
        assert read_rows(task, tmp_path, "train") == [row]


@given(
    st.lists(st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\t\n\0"), min_size=1), min_size=1)
)
def test_any_text_without_tab_and_line_feed_is_read_as_written(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str]
) -> None:
    path = tmp_path_factory.mktemp("rte") / "train.tsv"
    rows = [TextRow(str(number), "x" + text + "x", text.strip(" "), 0) for number, text in enumerate(texts)]
    write_tsv(path, RTE, RTE.train, rows)
    assert read_file(path, RTE, RTE.train) == rows


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_rows_or_an_error_of_ours(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    for name in ("cola", "rte", "swag", "squad2"):
        task = find_task(name)
        path = tmp_path_factory.mktemp("bytes") / task.train.name
        head = ",".join(task.train.columns) if task.format == "csv" else "\t".join(task.train.columns)
        path.write_bytes((head.encode() + b"\n" if task.train.header and task.format != "json" else b"") + data)
        rows = []
        with contextlib.suppress(TaskError):
            rows = read_file(path, task, task.train)
        assert all(row.id for row in rows)


def test_windows_line_ends_and_a_byte_order_mark_are_no_text(tmp_path: Path) -> None:
    lines = ["\t".join(MRPC.train.columns), "1\t7\t8\tone\ttwo"]
    (tmp_path / "train.tsv").write_bytes(b"\xef\xbb\xbf" + "\r\n".join(lines).encode() + b"\r\n")
    assert read_rows(MRPC, tmp_path, "train") == [TextRow("0", "one", "two", 1)]


def test_a_row_without_its_final_line_feed_is_read(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_bytes(b"sentence\tlabel\ngood \t1")
    assert read_rows(SST2, tmp_path, "train") == [TextRow("0", "good", None, 1)]


def test_bad_rows_are_left_out_only_when_asked(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_bytes(_lines("gj04\t1\t\tone", "gj04\t1\ttwo", "gj04\t0\t\tthree"))
    rows = read_rows(COLA, tmp_path, "train", skip_bad_rows=True)
    assert [row.first for row in rows if isinstance(row, TextRow)] == ["one", "three"]


def test_checking_reports_every_problem_and_trains_nothing(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_bytes(_lines("gj04\t1\t\tone", "gj04\t1\ttwo", "gj04\t7\t\tthree", "gj04\t1\t\tone"))
    train, dev = check_data(COLA, tmp_path)
    assert (train.num_rows, train.labels, train.repeated, len(train.problems)) == (2, {"1": 2}, 1, 2)
    assert "missing" in dev.problems[0]


def test_a_folder_without_the_task_is_refused_with_what_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match=r"glue/RTE/train\.tsv"):
        read_rows(RTE, tmp_path, "train")


def test_an_unknown_task_is_refused_with_the_known_ones() -> None:
    with pytest.raises(TaskError, match="squad2"):
        find_task("wnli")


def test_a_subset_is_drawn_by_its_seed_and_keeps_the_order() -> None:
    rows = list(range(100))
    assert subset(rows, 10, seed=1) == subset(rows, 10, seed=1) == sorted(subset(rows, 10, seed=1))
    assert subset(rows, 10, seed=1) != subset(rows, 10, seed=2)
    assert subset(rows, None) == subset(rows, 100) == rows
    with pytest.raises(TaskError, match="at least 1"):
        subset(rows, 0)


@pytest.fixture(scope="module")
def builtin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_builtin(tmp_path_factory.mktemp("tasks"))


@pytest.mark.parametrize("name", TASKS)
def test_the_builtin_files_read_without_a_problem_and_hold_every_label(builtin: Path, name: str) -> None:
    task = find_task(name)
    reports = check_data(task, builtin)
    assert len(reports) == 1 + len(task.dev) + len(task.test)
    assert not any(report.problems for report in reports)
    assert len(reports[0].labels) >= max(2, len(task.labels)) - (name == "squad1")


def test_the_builtin_files_are_the_same_bytes_every_time(builtin: Path, tmp_path: Path) -> None:
    again = write_builtin(tmp_path)
    for path in sorted(builtin.rglob("*.*")):
        assert path.read_bytes() == (again / path.relative_to(builtin)).read_bytes()


def test_the_real_files_read_without_a_problem(shared_data: Path) -> None:
    counts: dict[str, list[int]] = {}
    for name, task in TASKS.items():
        reports = check_data(task, shared_data)
        assert not [report.problems[:1] for report in reports if report.problems]
        counts[name] = [report.num_rows for report in reports]
    assert counts["cola"][:2] == [8551, 1043]
    assert counts["mnli"][:3] == [13286, 9815, 1000]
    assert counts["squad2"][:2] == [9086, 1322]
    assert counts["swag"][:2] == [1665, 556]


def test_the_true_swag_rows_read(shared_data: Path) -> None:
    assert len(read_file(shared_data / "swag" / "real_rows.csv", SWAG, SWAG.train)) == 160
