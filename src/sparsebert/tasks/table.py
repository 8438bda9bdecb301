"""The eleven tasks as data: files, columns, labels, head, metric and the settings of the paper's appendix."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from sparsebert.errors import TaskError

Kind = Literal["classification", "regression", "choice", "span"]
Metric = Literal["accuracy", "f1", "matthews", "spearman", "pearson", "exact", "best_f1", "best_exact"]
Format = Literal["tsv", "csv", "json"]

LEARNING_RATES = (2e-5, 1e-5, 1.5e-5, 3e-5, 4e-5, 5e-5)
WEIGHT_DECAYS = (0.1, 0.01)
WARMUP = 0.1  # share of the steps
NUM_ENDINGS = 4  # to choose from, in SWAG
SCORE_RANGE = (0.0, 5.0)  # of STS-B; the paper says 1 to 5, the files 0 to 5


@dataclass(frozen=True)
class File:
    """One official file of a task."""

    name: str
    columns: tuple[str, ...] = ()
    header: bool = True  # whether the first line names the columns
    labelled: bool = True


@dataclass(frozen=True)
class Task:
    """Everything that sets one task apart from another."""

    name: str
    title: str  # as the official folder and the paper's tables spell it
    kind: Kind
    metrics: tuple[Metric, ...]  # the first is the one the paper reports
    train: File
    dev: Mapping[str, File]  # section ("" where there is but one) to file
    test: Mapping[str, File]
    submission: Mapping[str, str]  # section to the name the server expects
    folders: tuple[str, ...]  # where the files lie under the data folder, as they are usually unpacked
    format: Format = "tsv"
    text: tuple[str, ...] = ()  # columns of the sentence, or of the two
    label: str = ""  # column
    id: str | None = None  # column that numbers the rows, where every file has one
    labels: tuple[str, ...] = ()  # as the files spell them; a class is a place in this list
    batch_size: int = 32
    num_epochs: int = 3
    length: int = 128  # tokens
    stride: int = 0  # tokens by which a window moves on; 0: no windows
    with_no_answer: bool = False
    hub: tuple[str, str | None] = ("", None)  # dataset id and configuration
    names: Mapping[str, str] = field(default_factory=dict)  # label as the file spells it -> a word for people

    @property
    def metric(self) -> Metric:
        return self.metrics[0]

    @property
    def num_labels(self) -> int:
        """Outputs of the head."""
        return {"classification": len(self.labels), "regression": 1, "choice": 1, "span": 2}[self.kind]

    @property
    def head(self) -> Literal["sequence_classification", "multiple_choice", "question_answering"]:
        if self.kind == "choice":
            return "multiple_choice"
        return "question_answering" if self.kind == "span" else "sequence_classification"

    def spelled(self, label: int | float) -> str:
        """A class or a score as the task's files spell it."""
        return f"{label:.3f}" if self.kind == "regression" else self.labels[int(label)]

    def label_name(self, label: int) -> str:
        """The class as people say it: what predictions and the model's configuration show."""
        spelling = self.labels[label]
        return self.names.get(spelling, spelling)


_PAIR = ("sentence1", "sentence2")
_QUESTIONS = ("question1", "question2")
_TWO_WAY = ("entailment", "not_entailment")
_MNLI = (
    *("index", "promptID", "pairID", "genre"),
    *("sentence1_binary_parse", "sentence2_binary_parse", "sentence1_parse", "sentence2_parse"),
    *_PAIR,
)
_STSB = ("index", "genre", "filename", "year", "old_index", "source1", "source2", *_PAIR)
_MRPC = ("#1 ID", "#2 ID", "#1 String", "#2 String")
_SWAG = (
    *("", "video-id", "fold-ind", "startphrase", "sent1", "sent2", "gold-source"),
    *(f"ending{index}" for index in range(NUM_ENDINGS)),
)


def _glue(
    title: str,
    *,
    train: tuple[str, ...],  # columns of that file
    dev: tuple[str, ...] | None = None,  # where they are not those of train
    test: tuple[str, ...],
    header: bool = True,  # of files with labels
    submission: Mapping[str, str] | None = None,
    **others: Any,
) -> Task:
    """A task of GLUE, whose files and folders are called alike; others: fields that are the task's own."""
    name, parts = title.lower().replace("-", ""), submission or {"": f"{title}.tsv"}
    end = {part: f"_{part}.tsv" if part else ".tsv" for part in parts}
    usual: dict[str, Any] = {"kind": "classification", "metrics": ("accuracy",), "label": "label"}
    return Task(
        name=name,
        title=title,
        train=File("train.tsv", train, header),
        dev={part: File(f"dev{end[part]}", dev or train, header) for part in parts},
        test={part: File(f"test{end[part]}", test, labelled=False) for part in parts},
        submission=parts,
        folders=(f"glue/{title}", f"GLUE/{title}", title, ""),
        hub=("nyu-mll/glue", name),
        **(usual | others),
    )


def _binary(zero: str, one: str) -> dict[str, Any]:
    """Labels that the files spell 0 and 1."""
    return {"labels": ("0", "1"), "names": {"0": zero, "1": one}}


_GLUE = (
    _glue(
        "MNLI",
        train=(*_MNLI, "label1", "gold_label"),
        dev=(*_MNLI, "label1", "label2", "label3", "label4", "label5", "gold_label"),
        test=_MNLI,
        submission={"matched": "MNLI-m.tsv", "mismatched": "MNLI-mm.tsv"},
        text=_PAIR,
        label="gold_label",
        id="index",
        labels=("contradiction", "entailment", "neutral"),
    ),
    _glue(
        "QQP",
        metrics=("f1", "accuracy"),
        train=("id", "qid1", "qid2", *_QUESTIONS, "is_duplicate"),
        test=("id", *_QUESTIONS),
        text=_QUESTIONS,
        label="is_duplicate",
        id="id",
        **_binary("not_duplicate", "duplicate"),
    ),
    _glue(
        "QNLI",
        train=("index", "question", "sentence", "label"),
        test=("index", "question", "sentence"),
        text=("question", "sentence"),
        id="index",
        labels=_TWO_WAY,
    ),
    _glue(
        "SST-2",
        train=("sentence", "label"),
        test=("index", "sentence"),
        text=("sentence",),
        **_binary("negative", "positive"),
    ),
    _glue(
        "CoLA",
        metrics=("matthews", "accuracy"),
        train=("source", "label", "annotation", "sentence"),
        header=False,
        test=("index", "sentence"),
        text=("sentence",),
        **_binary("unacceptable", "acceptable"),
    ),
    _glue(
        "STS-B",
        kind="regression",
        metrics=("spearman", "pearson"),
        train=(*_STSB, "score"),
        test=_STSB,
        text=_PAIR,
        label="score",
        id="index",
    ),
    _glue(
        "MRPC",
        metrics=("f1", "accuracy"),
        train=("Quality", *_MRPC),
        test=("index", *_MRPC),
        text=("#1 String", "#2 String"),
        label="Quality",
        **_binary("not_equivalent", "equivalent"),
    ),
    _glue("RTE", train=("index", *_PAIR, "label"), test=("index", *_PAIR), text=_PAIR, id="index", labels=_TWO_WAY),
)

_SWAG_TASK = Task(
    "swag",
    "SWAG",
    "choice",
    ("accuracy",),
    File("train.csv", (*_SWAG, "label")),
    {"": File("val.csv", (*_SWAG, "label"))},
    {"": File("test.csv", _SWAG, labelled=False)},
    {"": "SWAG.csv"},
    ("swag", "SWAG", ""),
    format="csv",
    label="label",
    id="",
    labels=tuple(str(index) for index in range(NUM_ENDINGS)),
    batch_size=16,
    hub=("allenai/swag", "regular"),
)


def _squad(version: str, *, batch_size: int, num_epochs: int, with_no_answer: bool) -> Task:
    major = version[0]
    return Task(
        f"squad{major}",
        f"SQuAD v{version}",
        "span",
        # v2.0 is scored at the no-answer threshold that serves best on the dev rows, as the official script does.
        ("best_f1", "best_exact") if with_no_answer else ("f1", "exact"),
        File(f"train-v{version}.json"),
        {"": File(f"dev-v{version}.json")},
        {"": File(f"test-v{version}.json", labelled=False)},
        {"": f"squad-v{version}-predictions.json"},
        ("squad", "SQuAD", f"squad{major}", ""),
        format="json",
        batch_size=batch_size,
        num_epochs=num_epochs,
        length=384,
        stride=128,
        with_no_answer=with_no_answer,
        hub=("rajpurkar/squad_v2" if with_no_answer else "rajpurkar/squad", None),
    )


TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        *_GLUE,
        _SWAG_TASK,
        _squad("1.1", batch_size=32, num_epochs=3, with_no_answer=False),
        _squad("2.0", batch_size=48, num_epochs=2, with_no_answer=True),
    )
}
GLUE = tuple(task.name for task in _GLUE)


def find_task(name: str) -> Task:
    if name not in TASKS:
        raise TaskError(f"there is no task {name!r}; expected one of {', '.join(TASKS)}")
    return TASKS[name]
