"""How a fine-tuning run is made, whatever its task."""

from dataclasses import dataclass, replace
from typing import Any, Self

from sparsebert.errors import ConfigError
from sparsebert.model.head_pooling import Pooling
from sparsebert.settings import Count, Natural, NotNegative, Positive, Share, check
from sparsebert.tasks.table import WARMUP, find_task
from sparsebert.tasks.task_pattern import Anchoring


@dataclass(frozen=True)
class FinetuneConfig:
    """What defines a fine-tuning run; None takes the task's setting from the paper's appendix."""

    task: str
    data: str  # folder with the official folders, builtin:tasks, or hub:NAME
    model: str
    length: Count | None = None  # tokens of an input
    stride: Natural | None = None  # tokens by which SQuAD windows move on; 0: no windows
    batch_size: Count | None = None  # items of a step
    num_epochs: Positive | None = None  # times over the training rows
    learning_rate: Positive = 2e-5  # at its peak
    weight_decay: NotNegative = 0.01  # of matrices
    warmup: Share = WARMUP  # share of the steps
    max_rows: Count | None = None  # training rows, drawn by subset_seed
    max_dev_rows: Count | None = None  # dev rows of each section
    subset_seed: int = 0  # not the run's seed: several seeds train on the same rows
    skip_bad_rows: bool = False
    anchor: Anchoring = "auto"
    seed: int = 0
    pooling: Pooling | None = None  # what the head reads of a text; None: as in the model's folder, or [CLS]
    teacher: str | None = None  # a dense model fine-tuned on the task, whose answers and states are learned too

    def __post_init__(self) -> None:
        check(self)

    def resolved(self) -> Self:
        """With the task's own settings where none were given."""
        task = find_task(self.task)
        filled: dict[str, Any] = {
            name: getattr(task, name)
            for name in ("length", "stride", "batch_size", "num_epochs")
            if getattr(self, name) is None
        }
        config = replace(self, **filled)
        if task.stride and not config.stride:
            raise ConfigError(f"stride is 0; the windows of {task.title} must move on, so use 1 or more")
        if config.pooling is not None and task.kind == "span":
            raise ConfigError(
                f"pooling is {config.pooling}, but {task.title} is answered with a place in the text, so that its head "
                "reads every token by itself; leave pooling out"
            )
        return config
