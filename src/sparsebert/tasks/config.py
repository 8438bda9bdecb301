"""How a fine-tuning run is made, whatever its task."""

from dataclasses import asdict, dataclass, replace
from typing import Any

from sparsebert.errors import ConfigError
from sparsebert.tasks.fitting import Anchoring
from sparsebert.tasks.table import WARMUP, find_task


@dataclass(frozen=True)
class FinetuneConfig:
    """What defines a fine-tuning run; None takes the task's setting from the paper's appendix."""

    task: str
    data: str  # folder with the official folders, builtin:tasks, or hub:NAME
    model: str
    length: int | None = None  # tokens of an input
    stride: int | None = None  # tokens by which SQuAD windows move on
    batch_size: int | None = None  # items of a step
    num_epochs: float | None = None
    learning_rate: float = 2e-5
    weight_decay: float = 0.01
    warmup: float = WARMUP  # share of the steps
    max_rows: int | None = None  # training rows, drawn by subset_seed
    max_dev_rows: int | None = None  # dev rows of each section
    subset_seed: int = 0  # not the run's seed: several seeds train on the same rows
    skip_bad_rows: bool = False
    anchor: Anchoring = "auto"
    seed: int = 0

    def resolved(self) -> "FinetuneConfig":
        """With the task's own settings where none were given."""
        task = find_task(self.task)
        filled: dict[str, Any] = {
            name: getattr(task, name)
            for name in ("length", "stride", "batch_size", "num_epochs")
            if getattr(self, name) is None
        }
        config = replace(self, **filled)
        for name in ("length", "batch_size", "num_epochs", "learning_rate"):
            if not getattr(config, name) > 0:
                raise ConfigError(f"{name} is {getattr(config, name)!r}; expected a number above 0")
        if not 0 <= config.warmup <= 1:
            raise ConfigError(f"warmup is {config.warmup!r}; expected a share of the steps, from 0 to 1")
        return config

    def determining(self) -> dict[str, Any]:
        """Every setting that a result depends on but the seed, as JSON; files and weights are known by their hashes."""
        known = {"data", "model", "seed"}
        return {name: value for name, value in asdict(self.resolved()).items() if name not in known}
