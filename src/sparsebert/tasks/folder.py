"""What a fine-tuned folder holds beside the weights: tokenizer, task settings, a card; and how it is opened again."""

from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from sparsebert.errors import TaskError
from sparsebert.files import read_json, write_atomic, write_json
from sparsebert.model.saving import save_tokenizer, save_trained
from sparsebert.tasks.card import model_card
from sparsebert.tasks.table import Task, find_task
from sparsebert.text import load_tokenizer, vocabulary_hash

_SETTINGS = "task.json"


@dataclass(frozen=True)
class TaskSettings:
    """What prediction must know of training; task.json in the model's folder."""

    task: str
    length: int  # tokens of an input
    stride: int  # tokens by which windows move on
    threshold: float | None = None  # of SQuAD v2.0: above it, there is no answer
    vocabulary: str = ""  # hash; another tokenizer.json would give other ids


@dataclass(frozen=True)
class TaskFolder:
    """Saves a fine-tuned model so that transformers, and predict, can open it."""

    task: Task
    tokenizer: Tokenizer
    length: int
    stride: int
    command: str | None = None  # that makes the folder again, for the card

    def save(self, folder: Path, model: Any, result: dict[str, Any]) -> None:
        """model/ in the run folder."""
        threshold = result["metrics"].get("best_f1_threshold")
        settings = TaskSettings(self.task.name, self.length, self.stride, threshold, vocabulary_hash(self.tokenizer))

        def more(into: Path) -> None:
            save_tokenizer(self.tokenizer, into, self.length)
            write_json(into / _SETTINGS, asdict(settings))
            write_atomic(into / "README.md", model_card(self.task, model, result, self.command).encode())

        save_trained(model, folder, more=more)


def model_folder_of(run: str | Path) -> Path:
    """A run folder's model/, or the folder itself."""
    folder = Path(run)
    found = folder / "model" if (folder / "model" / _SETTINGS).is_file() else folder
    if not (found / _SETTINGS).is_file():
        raise TaskError(f"{run} holds no fine-tuned model; expected the folder of a fine-tuning run that ended")
    return found


def open_settings(run: str | Path) -> TaskSettings:
    path = model_folder_of(run) / _SETTINGS
    found = read_json(path)
    names = {field.name for field in fields(TaskSettings)}
    if not isinstance(found, dict) or set(found) != names:
        raise TaskError(f"{path} does not describe a task; fine-tune again or restore it from a copy")
    settings = TaskSettings(**found)
    find_task(settings.task)
    return settings


def open_tokenizer(run: str | Path) -> Tokenizer:
    """The folder's own tokenizer, which must be the one it was trained with."""
    folder, settings = model_folder_of(run), open_settings(run)
    tokenizer = load_tokenizer(str(folder))
    if vocabulary_hash(tokenizer) != settings.vocabulary:
        raise TaskError(f"{folder}/tokenizer.json is not the vocabulary the model was trained with; restore it")
    return tokenizer
