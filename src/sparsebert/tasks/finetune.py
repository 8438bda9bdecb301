"""finetune(): one run, from official files to a scored transformers folder, through the one training loop."""

import contextlib
import logging
import math
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias

from tokenizers import Tokenizer

from sparsebert.errors import ConfigError
from sparsebert.files import canonical_json, sha256, sha256_of_file
from sparsebert.model import load_model
from sparsebert.patterns import Pattern
from sparsebert.tasks.builtin import BUILTIN, write_builtin
from sparsebert.tasks.config import FinetuneConfig
from sparsebert.tasks.fitting import pattern_for
from sparsebert.tasks.folder import TaskFolder
from sparsebert.tasks.items import make_items
from sparsebert.tasks.objective import TaskObjective
from sparsebert.tasks.reading import HUB, has_part, part_path, read_rows, subset
from sparsebert.tasks.rows import ChoiceRow, QuestionRow, Row
from sparsebert.tasks.table import Task, find_task
from sparsebert.text import load_tokenizer, train_tokenizer, vocabulary_hash
from sparsebert.training import FitConfig, Result, Watcher, fit
from sparsebert.training.starting_points import shape_of, source_of

logger = logging.getLogger(__name__)

_SCRATCH_POSITIONS = 512  # of a model from scratch
_SCRATCH_VOCABULARY = 8000  # at most, for a model from scratch: its vocabulary comes from the task's own texts


# Attaches a gate to the model, for so many steps; returns it and what ends the search: freeze(folder) -> pattern.
GateMaker: TypeAlias = Callable[[Any, int], tuple[Any, Callable[[Path], Pattern]]]


@dataclass(frozen=True)
class Prepared:
    """A run that is ready to be fitted."""

    objective: TaskObjective
    config: FitConfig
    settings: dict[str, Any]


def finetune(
    config: FinetuneConfig,
    out: Path,
    *,
    pattern: Pattern | str | None = None,
    fit_settings: Mapping[str, Any] | None = None,
    progress: Watcher | None = None,
) -> Result:
    """Train, score on the dev rows, save; called again on the same folder it resumes."""
    prepared = prepare(config, out, pattern=pattern, fit_settings=fit_settings)
    return fit(prepared.objective, prepared.config, out, settings=prepared.settings, progress=progress)


def prepare(
    config: FinetuneConfig,
    out: Path,
    *,
    pattern: Pattern | str | None = None,
    fit_settings: Mapping[str, Any] | None = None,
    make_gate: GateMaker | None = None,
) -> Prepared:
    """Everything but the training: rows, tokens, model, pattern, and the settings that run.json records.

    make_gate: learns a pattern on the task's own loss while the weights are trained.
    """
    config = config.resolved()
    task = find_task(config.task)
    source = source_of(config.model)
    given = _check_sizes(config, task, source, pattern)
    with _undone_on_error(Path(out)):
        return _prepared(config, task, source, given, out, command_of(config, pattern), fit_settings, make_gate)


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


def _prepared(
    config: FinetuneConfig,
    task: Task,
    source: str,
    given: Pattern | None,
    out: Path,
    command: str,
    fit_settings: Mapping[str, Any] | None,
    make_gate: GateMaker | None,
) -> Prepared:
    data = data_folder(config.data, out)
    train, dev = load_rows(config, task, data)
    tokenizer = tokenizer_for(source, train)
    model = load_task_model(source, task, tokenizer, config.seed)
    fitted = _fit_pattern(model, given, config, task)
    length, stride = int(config.length or 0), int(config.stride or 0)
    items = {section: make_items(task, rows, tokenizer, length, stride) for section, rows in dev.items()}
    objective = TaskObjective(
        model,
        task,
        make_items(task, train, tokenizer, length, stride),
        items,
        folder=TaskFolder(task, tokenizer, length, stride, command),
        batch_size=int(config.batch_size or 0),
        learning_rate=config.learning_rate,
        weight_decay=config.weight_decay,
        seed=config.seed,
    )
    settings = asdict(config) | {
        "data_sha256": fingerprint(task, data),
        "vocabulary": vocabulary_hash(tokenizer),
        "pattern": None if fitted is None else fitted.digest,
        "rows": len(train),
        "dev_rows": {section or "dev": len(rows) for section, rows in dev.items()},
    }
    del settings["seed"]  # fit records it
    fitting = fit_config(config, objective.steps_per_epoch, fit_settings)
    if make_gate is not None:
        objective.gate, objective.freeze = make_gate(model, fitting.num_steps)
    return Prepared(objective, fitting, settings)


def fit_config(config: FinetuneConfig, steps_per_epoch: int, changes: Mapping[str, Any] | None = None) -> FitConfig:
    num_steps = max(1, math.ceil(float(config.num_epochs or 0) * steps_per_epoch))
    given = {"num_steps": num_steps, **(changes or {})}
    given.setdefault("warmup_steps", math.ceil(config.warmup * given["num_steps"]))
    return FitConfig(seed=config.seed, **given)


def data_folder(data: str, out: Path) -> str:
    """The data folder; built-in tasks are written into the run folder."""
    return str(write_builtin(Path(out) / "data")) if data == BUILTIN else data


def load_rows(config: FinetuneConfig, task: Task, data: str) -> tuple[list[Row], dict[str, list[Row]]]:
    """Training rows, and dev rows by section, as many as were asked for."""
    skip = config.skip_bad_rows
    train = subset(read_rows(task, data, "train", skip_bad_rows=skip), config.max_rows, config.subset_seed)
    sections = [section for section in task.dev if has_part(task, data, "dev", section)] or list(task.dev)
    dev = {
        section: subset(
            read_rows(task, data, "dev", section, skip_bad_rows=skip), config.max_dev_rows, config.subset_seed
        )
        for section in sections
    }
    return train, dev


def tokenizer_for(model: str, train: Sequence[Row]) -> Tokenizer:
    """The model's own; from scratch, one trained on the texts of the training rows."""
    if not model.startswith("scratch:"):
        return load_tokenizer(model)
    return train_tokenizer(lambda: _texts(train), _SCRATCH_VOCABULARY)


def _texts(rows: Sequence[Row]) -> Iterator[str]:
    for row in rows:
        if isinstance(row, QuestionRow):
            yield from (row.question, row.context)
        elif isinstance(row, ChoiceRow):
            yield from (row.context, row.start, *row.endings)
        else:
            yield row.first
            yield row.second or ""


def load_task_model(source: str, task: Task, tokenizer: Tokenizer, seed: int) -> Any:
    """The model with the task's head, whose labels have the task's names."""
    changes: dict[str, Any] = {}
    if task.kind == "classification":
        names = [task.label_name(index) for index in range(len(task.labels))]
        changes = {"id2label": dict(enumerate(names)), "label2id": {name: index for index, name in enumerate(names)}}
        changes["problem_type"] = "single_label_classification"
    elif task.kind == "regression":
        changes = {"id2label": {0: "score"}, "label2id": {"score": 0}, "problem_type": "regression"}
    if source.startswith("scratch:"):
        changes["vocab_size"] = tokenizer.get_vocab_size()
    return load_model(source, task.head, seed=seed, **changes)


def _check_sizes(config: FinetuneConfig, task: Task, source: str, pattern: Pattern | str | None) -> Pattern | None:
    """Before any work: whether the model has positions for the inputs, and the pattern that was asked for."""
    length, shape = int(config.length or 0), shape_of(source)
    positions = int(shape.get("max_position_embeddings", _SCRATCH_POSITIONS))
    if length > positions:
        raise ConfigError(
            f"length is {length} but {config.model} has {positions} positions; choose at most {positions}, "
            f"or extend them first: sparsebert pretrain --length {length}"
        )
    if pattern is None:
        return None
    heads = int(shape["num_attention_heads"])
    return pattern_for(pattern, length=length, heads=heads, anchor=config.anchor, what=task.title)


def _fit_pattern(model: Any, given: Pattern | None, config: FinetuneConfig, task: Task) -> Pattern | None:
    """The pattern that was asked for, or the model's own."""
    fitted = given or pattern_for(
        model.pattern,
        length=int(config.length or 0),
        heads=int(model.config.num_attention_heads),
        anchor=config.anchor,
        what=task.title,
    )
    if fitted is not None:
        model.set_pattern(fitted)
    return fitted


def fingerprint(task: Task, data: str) -> str:
    """sha256 over the files that the run reads: a run is not resumed on other rows."""
    if data.startswith(HUB):
        return data
    paths = [part_path(task, data, "train"), *(part_path(task, data, "dev", section) for section in task.dev)]
    return sha256(canonical_json([sha256_of_file(path) for path in paths if path.is_file()]).encode())


def command_of(config: FinetuneConfig, pattern: Pattern | str | None) -> str:
    """The command line that makes the run again."""
    words = [f"sparsebert finetune {config.task} --data {config.data} --model {config.model}"]
    if pattern is not None:
        words.append(f"--pattern {pattern if isinstance(pattern, str) else 'pattern.safetensors'}")
    default = FinetuneConfig(config.task, config.data, config.model).resolved()
    for name, value in asdict(config).items():
        if value != getattr(default, name) and name not in ("task", "data", "model"):
            words.append(f"--set {name}={value}" if name in _BY_SET else _option(name, value))
    return " ".join(words) + " --out RUN"


_BY_SET = {"stride", "warmup", "subset_seed"}
_OPTIONS = {"num_epochs": "epochs"}


def _option(name: str, value: Any) -> str:
    flag = f"--{_OPTIONS.get(name, name).replace('_', '-')}"
    return flag if value is True else f"{flag} {value}"
