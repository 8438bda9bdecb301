"""What a task's run needs before training: rows, a tokenizer, a model with the task's head, and a hash of the files."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from sparsebert.errors import ConfigError
from sparsebert.files import canonical_json, read_json, sha256, sha256_of_file
from sparsebert.model import load_model
from sparsebert.model.head_pooling import Pooling
from sparsebert.tasks.builtin import BUILTIN, write_builtin
from sparsebert.tasks.config import FinetuneConfig
from sparsebert.tasks.files.reading import HUB, Split, has_part, part_path, read_rows, subset
from sparsebert.tasks.files.rows import Row
from sparsebert.tasks.table import Task
from sparsebert.text import load_tokenizer, train_tokenizer

_SCRATCH_VOCABULARY = 8000  # at most, for a model from scratch: its vocabulary comes from the task's own texts


def data_folder(data: str, out: Path) -> str:
    """The data folder; built-in tasks are written into the run folder."""
    return str(write_builtin(Path(out) / "data")) if data == BUILTIN else data


def load_rows(config: FinetuneConfig, task: Task, data: str) -> tuple[list[Row], dict[str, list[Row]]]:
    """Training rows, and dev rows by section, as many as were asked for."""

    def read(split: Split, most: int | None, section: str = "") -> list[Row]:
        rows = read_rows(task, data, split, section, skip_bad_rows=config.skip_bad_rows)
        return subset(rows, most, config.subset_seed)

    sections = [section for section in task.dev if has_part(task, data, "dev", section)] or list(task.dev)
    train = read("train", config.max_rows)
    return train, {section: read("dev", config.max_dev_rows, section) for section in sections}


def tokenizer_for(model: str, train: Sequence[Row]) -> Tokenizer:
    """The model's own; from scratch, one trained on the texts of the training rows."""
    if not model.startswith("scratch:"):
        return load_tokenizer(model)
    return train_tokenizer(lambda: (text for row in train for text in row.texts), _SCRATCH_VOCABULARY)


def load_task_model(source: str, task: Task, tokenizer: Tokenizer, seed: int, pooling: Pooling | None = None) -> Any:
    """The model with the task's head, whose labels have the task's names. pooling: of the head; None: the folder's."""
    _refuse_other_head(Path(source), task)
    changes: dict[str, Any] = {}
    if task.kind == "classification":
        names = [task.label_name(index) for index in range(len(task.labels))]
        changes = {"id2label": dict(enumerate(names)), "label2id": {name: index for index, name in enumerate(names)}}
        changes["problem_type"] = "single_label_classification"
    elif task.kind == "regression":
        changes = {"id2label": {0: "score"}, "label2id": {"score": 0}, "problem_type": "regression"}
    if source.startswith("scratch:"):
        changes["vocab_size"] = tokenizer.get_vocab_size()
    if pooling is not None:
        changes["head_pooling"] = pooling
    return load_model(source, task.head, seed=seed, **changes)


def _refuse_other_head(folder: Path, task: Task) -> None:
    """Of a model that was fine-tuned on a task with other answers: its head would not fit."""
    if not (folder / "config.json").is_file() or task.kind not in ("classification", "regression"):
        return
    config = read_json(folder / "config.json")
    if any("SequenceClassification" in str(name) for name in config.get("architectures") or ()):
        answers = len(config.get("id2label") or ("no", "yes"))
        if answers != task.num_labels:
            raise ConfigError(
                f"the head of {folder} gives {answers} numbers, but {task.title} asks for {task.num_labels}; choose a "
                "model that was not fine-tuned on another task"
            )


def task_hash(task: Task, data: str) -> str:
    """sha256 over the files that the run reads: a run is not resumed on other rows."""
    if data.startswith(HUB):
        return data
    paths = [part_path(task, data, "train"), *(part_path(task, data, "dev", section) for section in task.dev)]
    return sha256(canonical_json([sha256_of_file(path) for path in paths if path.is_file()]).encode())
