"""Fine-tuning: from official files to a scored transformers folder."""

import contextlib
import math
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Self

from tokenizers import Tokenizer

from sparsebert.errors import ConfigError
from sparsebert.model import unsparsify
from sparsebert.model.heads import give_pattern, pattern_of
from sparsebert.patterns import Pattern
from sparsebert.runs.run import Prepared, RunSettings
from sparsebert.tasks.config import FinetuneConfig
from sparsebert.tasks.encoding.encoded_rows import make_items
from sparsebert.tasks.folder import TaskFolder, model_folder_of, open_settings
from sparsebert.tasks.loading import data_folder, load_rows, load_task_model, task_hash, tokenizer_for
from sparsebert.tasks.objective import TaskObjective
from sparsebert.tasks.table import Task, find_task
from sparsebert.tasks.task_pattern import pattern_for
from sparsebert.tasks.teacher import TaskTeacher
from sparsebert.text import source_of, vocabulary_hash
from sparsebert.training import FitConfig, Objective
from sparsebert.training.fidelity import require_same_shape
from sparsebert.training.fingerprint import fingerprint
from sparsebert.training.starting_points import longest_row, shape_of

# Two ways to say one thing: the second would silently win.
_EITHER_OR = (("num_epochs", "num_steps"), ("warmup", "warmup_steps"))


@dataclass(frozen=True, kw_only=True)
class TaskRun(FinetuneConfig, RunSettings):
    """A model trained on a task's rows."""

    command: str | None = None  # that makes the run again, for the model card
    saves_model: bool = True  # False: its scores and its pattern are all that is wanted

    UNNAMED = frozenset({"command", "saves_model"})

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Self:
        for one, other in _EITHER_OR:
            if given.get(one) is not None and given.get(other) is not None:
                raise ConfigError(f"{one} and {other} are both given; {other} would replace {one}, so leave one out")
        return super().read({name: value for name, value in given.items() if value is not None})

    def objective(self, tuned: TaskObjective, steps: int) -> Objective:
        """What is trained, around the task's own loss."""
        raise NotImplementedError

    def own_pattern(self, heads: int) -> Pattern | None:
        """A pattern that is asked for, found before anything is loaded."""
        return None

    def prepare(self, out: Path) -> Prepared:
        run = self.resolved()
        shape = run.checked_shape()
        own = run.own_pattern(int(shape["num_attention_heads"]))
        with _undone_on_error(out):
            return run.prepared(out, own)

    def prepared(self, out: Path, own: Pattern | None) -> Prepared:
        """The settings are resolved and checked by now."""
        task, source, data = find_task(self.task), source_of(self.model), data_folder(self.data, out)
        train, dev = load_rows(self, task, data)
        tokenizer = tokenizer_for(source, train)
        model = load_task_model(source, task, tokenizer, self.seed, self.pooling)
        fitted = own or pattern_for(pattern_of(model), **self.fitting(int(model.config.num_attention_heads)))
        if fitted is not None:
            give_pattern(model, fitted)
        length, stride = int(self.length or 0), int(self.stride or 0)
        items = make_items(task, train, tokenizer, length, stride)
        teacher = self.task_teacher(task, tokenizer, items.each, model)
        tuned = TaskObjective(
            model,
            task,
            items,
            {section: make_items(task, rows, tokenizer, length, stride) for section, rows in dev.items()},
            folder=TaskFolder(task, tokenizer, length, stride, self.command) if self.saves_model else None,
            batch_size=int(self.batch_size or 0),
            learning_rate=self.learning_rate,
            weight_decay=self.weight_decay,
            seed=self.seed,
            teacher=teacher,
        )
        config = self.fit_config(tuned.steps_per_epoch)
        objective = self.objective(tuned, config.num_steps)
        # A later setting, where it is used: runs of earlier versions still go on.
        apart = {"seed"} if self.pooling is not None else {"seed", "pooling"}
        settings = {one.name: getattr(self, one.name) for one in fields(FinetuneConfig) if one.name not in apart} | {
            "data_sha256": task_hash(task, data),
            "vocabulary": vocabulary_hash(tokenizer),
            "pattern": None if fitted is None else fitted.digest,
            "rows": len(train),
            "dev_rows": {section or "dev": len(rows) for section, rows in dev.items()},
            "weights_sha256": fingerprint(model),
            "teacher_sha256": None if teacher is None else fingerprint(teacher.model),
        }
        return Prepared(objective, config, settings)

    def task_teacher(self, task: Task, tokenizer: Tokenizer, each: int, student: Any) -> TaskTeacher | None:
        """The dense model of the task that is asked for, if it makes states like the student's."""
        if self.teacher is None:
            return None
        settings = open_settings(self.teacher)
        if (settings.task, settings.vocabulary) != (task.name, vocabulary_hash(tokenizer)):
            raise ConfigError(
                f"teacher {self.teacher} was fine-tuned on {settings.task}; expected a dense model fine-tuned on "
                f"{task.name} with the vocabulary of {self.model}"
            )
        model = load_task_model(str(model_folder_of(self.teacher)), task, tokenizer, self.seed)
        if pattern_of(model) is not None:
            raise ConfigError(f"teacher {self.teacher} is sparse; expected a dense model fine-tuned on {task.name}")
        require_same_shape(student, model, f"teacher {self.teacher}")
        return TaskTeacher(unsparsify(model), task.kind, each)

    def fitting(self, heads: int) -> dict[str, Any]:
        """What a pattern has to fit."""
        what = find_task(self.task).title
        return {"length": int(self.length or 0), "heads": heads, "anchor": self.anchor, "what": what}

    def fit_config(self, steps_per_epoch: int) -> FitConfig:
        num_steps = max(1, math.ceil(float(self.num_epochs or 0) * steps_per_epoch))
        given = {"num_steps": num_steps, **self.fit}
        given.setdefault("warmup_steps", math.ceil(self.warmup * given["num_steps"]))
        return FitConfig(seed=self.seed, **given)

    def checked_shape(self) -> dict[str, Any]:
        """The model's sizes; before any work: whether it has positions for the inputs."""
        length, positions = int(self.length or 0), longest_row(self.model)
        if length > positions:
            raise ConfigError(
                f"length is {length} but {self.model} has {positions} positions; choose at most {positions}, "
                f"or extend them first by pre-training at length {length}"
            )
        return shape_of(self.model)


@dataclass(frozen=True, kw_only=True)
class FinetuneRun(TaskRun):
    """A task trained, dense or under a pattern, and scored on its dev rows."""

    pattern: Pattern | str | None = None  # a pattern, its file, or a builder's name; None: the model's own

    def own_pattern(self, heads: int) -> Pattern | None:
        return pattern_for(self.pattern, **self.fitting(heads))

    def objective(self, tuned: TaskObjective, steps: int) -> Objective:
        return tuned


@contextlib.contextmanager
def _undone_on_error(out: Path) -> Iterator[None]:
    """A run that cannot begin leaves no folder behind, where there was none."""
    existed = out.exists()
    try:
        yield
    except BaseException:
        if not existed:
            shutil.rmtree(out, ignore_errors=True)
        raise
