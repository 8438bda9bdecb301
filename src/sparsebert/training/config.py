"""How a run is trained, whatever it trains."""

from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal

from sparsebert.errors import ConfigError

# Settings that leave every bit of the result as it is: they may change when a run is resumed.
FREE_FIELDS = frozenset({"checkpoint_every", "keep_checkpoints", "peer_timeout", "tensorboard"})


@dataclass(frozen=True)
class FitConfig:
    """Settings of fit(); learning rates and weight decay belong to the objective's parameter groups."""

    num_steps: int  # optimiser steps, not micro-batches
    seed: int = 0
    warmup_steps: int = 0  # steps of linear rise to the peak rate
    schedule: Literal["linear", "constant"] = "linear"  # after warm-up, for groups that do not name their own
    betas: tuple[float, float] = (0.9, 0.999)  # of AdamW
    epsilon: float = 1e-6  # of AdamW; BERT's
    max_grad_norm: float = 1.0  # of the clipped groups together; 0: no clipping
    micro_batches: int = 1  # parts a step's batch is cut into, over all ranks together; a multiple of the ranks
    precision: Literal["float32", "bfloat16"] = "float32"  # of the forward pass; weights are float32 throughout
    evaluate_every: int = 0  # steps; 0: only after the last
    checkpoint_every: int = 100  # steps; the last step always has one
    keep_checkpoints: int = 2  # older ones are removed after a new one is in place
    max_skipped: int = 10  # steps in a row with a loss or gradient that is not finite, after which the run stops
    peer_timeout: float = 7.0  # seconds without a sign of life from another rank, after which a rank ends
    tensorboard: bool = False  # write event files beside metrics.jsonl

    def __post_init__(self) -> None:
        least = {"num_steps": 1, "micro_batches": 1, "checkpoint_every": 1, "keep_checkpoints": 1, "max_skipped": 1}
        for name in ("warmup_steps", "evaluate_every", "max_grad_norm", "epsilon", "peer_timeout"):
            least[name] = 0
        for name, bound in least.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not value >= bound:
                raise ConfigError(f"{name} is {value!r}; expected a number of at least {bound}")
        _check_choice("schedule", self.schedule, ("linear", "constant"))
        _check_choice("precision", self.precision, ("float32", "bfloat16"))
        object.__setattr__(self, "betas", tuple(self.betas))

    def for_ranks(self, ranks: int) -> "FitConfig":
        """The same with as many micro-batches as these ranks can share equally."""
        return replace(self, micro_batches=-(-self.micro_batches // ranks) * ranks)

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"betas": list(self.betas)}


def _check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ConfigError(f"{name} is {value!r}; expected one of {', '.join(choices)}")


def fit_fields() -> set[str]:
    """Names that `--set` may give to FitConfig."""
    return {field.name for field in fields(FitConfig)}
