"""The eleven tasks as data: files, columns, labels, head, metric and the settings of the paper's appendix."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from sparsebert.errors import TaskError

Kind = Literal["classification", "regression", "choice", "span"]
Metric = Literal["accuracy", "f1", "matthews", "spearman", "pearson", "exact", "best_f1", "best_exact"]
Format = Literal["tsv", "csv", "json"]

LEARNING_RATES = (2e-5, 1e-5, 1.5e-5, 3e-5, 4e-5, 5e-5)
WEIGHT_DECAYS = (0.1, 0.01)
WARMUP = 0.1  # share of the steps
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

    def label_name(self, label: int) -> str:
        """The class as people say it: what predictions and the model's configuration show."""
        spelling = self.labels[label]
        return self.names.get(spelling, spelling)


_PAIR = ("sentence1", "sentence2")
_TWO_WAY = ("entailment", "not_entailment")
_MNLI = (
    *("index", "promptID", "pairID", "genre"),
    *("sentence1_binary_parse", "sentence2_binary_parse", "sentence1_parse", "sentence2_parse"),
    *_PAIR,
)
_MNLI_DEV = (*_MNLI, "label1", "label2", "label3", "label4", "label5", "gold_label")
_STSB = ("index", "genre", "filename", "year", "old_index", "source1", "source2", *_PAIR)
_MRPC = ("#1 ID", "#2 ID", "#1 String", "#2 String")
_COLA = ("source", "label", "annotation", "sentence")
_SWAG = (
    *("", "video-id", "fold-ind", "startphrase", "sent1", "sent2", "gold-source"),
    *("ending0", "ending1", "ending2", "ending3"),
)


def _glue_folders(title: str) -> tuple[str, ...]:
    return (f"glue/{title}", f"GLUE/{title}", title, "")


def _both(columns: tuple[str, ...]) -> tuple[File, dict[str, File]]:
    """Train and dev files of one layout."""
    return File("train.tsv", columns), {"": File("dev.tsv", columns)}


def _test(*columns: str) -> dict[str, File]:
    return {"": File("test.tsv", columns, labelled=False)}


def _glue() -> list[Task]:
    sst2_train, sst2_dev = _both(("sentence", "label"))
    mrpc_train, mrpc_dev = _both(("Quality", *_MRPC))
    stsb_train, stsb_dev = _both((*_STSB, "score"))
    qqp_train, qqp_dev = _both(("id", "qid1", "qid2", "question1", "question2", "is_duplicate"))
    qnli_train, qnli_dev = _both(("index", "question", "sentence", "label"))
    rte_train, rte_dev = _both(("index", *_PAIR, "label"))
    return [
        Task(
            "mnli",
            "MNLI",
            "classification",
            ("accuracy",),
            File("train.tsv", (*_MNLI, "label1", "gold_label")),
            {
                "matched": File("dev_matched.tsv", _MNLI_DEV),
                "mismatched": File("dev_mismatched.tsv", _MNLI_DEV),
            },
            {
                "matched": File("test_matched.tsv", _MNLI, labelled=False),
                "mismatched": File("test_mismatched.tsv", _MNLI, labelled=False),
            },
            {"matched": "MNLI-m.tsv", "mismatched": "MNLI-mm.tsv"},
            _glue_folders("MNLI"),
            text=_PAIR,
            label="gold_label",
            id="index",
            labels=("contradiction", "entailment", "neutral"),
            hub=("nyu-mll/glue", "mnli"),
        ),
        Task(
            "qqp",
            "QQP",
            "classification",
            ("f1", "accuracy"),
            qqp_train,
            qqp_dev,
            _test("id", "question1", "question2"),
            {"": "QQP.tsv"},
            _glue_folders("QQP"),
            text=("question1", "question2"),
            label="is_duplicate",
            id="id",
            labels=("0", "1"),
            names={"0": "not_duplicate", "1": "duplicate"},
            hub=("nyu-mll/glue", "qqp"),
        ),
        Task(
            "qnli",
            "QNLI",
            "classification",
            ("accuracy",),
            qnli_train,
            qnli_dev,
            _test("index", "question", "sentence"),
            {"": "QNLI.tsv"},
            _glue_folders("QNLI"),
            text=("question", "sentence"),
            label="label",
            id="index",
            labels=_TWO_WAY,
            hub=("nyu-mll/glue", "qnli"),
        ),
        Task(
            "sst2",
            "SST-2",
            "classification",
            ("accuracy",),
            sst2_train,
            sst2_dev,
            _test("index", "sentence"),
            {"": "SST-2.tsv"},
            _glue_folders("SST-2"),
            text=("sentence",),
            label="label",
            labels=("0", "1"),
            names={"0": "negative", "1": "positive"},
            hub=("nyu-mll/glue", "sst2"),
        ),
        Task(
            "cola",
            "CoLA",
            "classification",
            ("matthews", "accuracy"),
            File("train.tsv", _COLA, header=False),
            {"": File("dev.tsv", _COLA, header=False)},
            _test("index", "sentence"),
            {"": "CoLA.tsv"},
            _glue_folders("CoLA"),
            text=("sentence",),
            label="label",
            labels=("0", "1"),
            names={"0": "unacceptable", "1": "acceptable"},
            hub=("nyu-mll/glue", "cola"),
        ),
        Task(
            "stsb",
            "STS-B",
            "regression",
            ("spearman", "pearson"),
            stsb_train,
            stsb_dev,
            _test(*_STSB),
            {"": "STS-B.tsv"},
            _glue_folders("STS-B"),
            text=_PAIR,
            label="score",
            id="index",
            hub=("nyu-mll/glue", "stsb"),
        ),
        Task(
            "mrpc",
            "MRPC",
            "classification",
            ("f1", "accuracy"),
            mrpc_train,
            mrpc_dev,
            _test("index", *_MRPC),
            {"": "MRPC.tsv"},
            _glue_folders("MRPC"),
            text=("#1 String", "#2 String"),
            label="Quality",
            labels=("0", "1"),
            names={"0": "not_equivalent", "1": "equivalent"},
            hub=("nyu-mll/glue", "mrpc"),
        ),
        Task(
            "rte",
            "RTE",
            "classification",
            ("accuracy",),
            rte_train,
            rte_dev,
            _test("index", *_PAIR),
            {"": "RTE.tsv"},
            _glue_folders("RTE"),
            text=_PAIR,
            label="label",
            id="index",
            labels=_TWO_WAY,
            hub=("nyu-mll/glue", "rte"),
        ),
    ]


def _swag() -> Task:
    return Task(
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
        labels=("0", "1", "2", "3"),
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
        *_glue(),
        _swag(),
        _squad("1.1", batch_size=32, num_epochs=3, with_no_answer=False),
        _squad("2.0", batch_size=48, num_epochs=2, with_no_answer=True),
    )
}
GLUE = tuple(task.name for task in _glue())


def find_task(name: str) -> Task:
    if name not in TASKS:
        raise TaskError(f"there is no task {name!r}; expected one of {', '.join(TASKS)}")
    return TASKS[name]
