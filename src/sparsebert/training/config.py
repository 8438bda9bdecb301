"""How a run is trained, whatever it trains."""

from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from sparsebert.errors import ConfigError
from sparsebert.settings import Count, Natural, NotNegative, ShareBelowOne, check

# Settings that leave every bit of the result as it is: they may change when a run is resumed.
FREE_FIELDS = frozenset({"checkpoint_every", "keep_checkpoints", "peer_timeout", "tensorboard"})


@dataclass(frozen=True)
class FitConfig:
    """Settings of fit(); learning rates and weight decay belong to the objective's parameter groups."""

    num_steps: Count  # optimiser steps, not micro-batches
    seed: int = 0
    warmup_steps: Natural = 0  # steps of linear rise to the peak rate, at most all of them
    schedule: Literal["linear", "constant"] = "linear"  # after warm-up, for groups that do not name their own
    betas: tuple[ShareBelowOne, ShareBelowOne] = (0.9, 0.999)  # of AdamW
    epsilon: NotNegative = 1e-6  # of AdamW; BERT's
    max_grad_norm: NotNegative = 1.0  # of the clipped groups together; 0: no clipping
    micro_batches: Count = 1  # parts a step's batch is cut into, over all ranks together; a multiple of the ranks
    precision: Literal["float32", "bfloat16"] = "float32"  # of the forward pass; weights are float32 throughout
    evaluate_every: Natural = 0  # steps; 0: only after the last
    checkpoint_every: Count = 100  # steps; the last step has one too, unless fit() is told to leave none
    keep_checkpoints: Count = 2  # older ones are removed after a new one is in place
    max_skipped: Count = 10  # steps in a row with a loss or gradient that is not finite, after which the run stops
    peer_timeout: NotNegative = 7.0  # seconds without a sign of life from another rank, after which a rank ends
    tensorboard: bool = False  # write event files beside metrics.jsonl

    def __post_init__(self) -> None:
        if isinstance(self.betas, list):  # as JSON has them
            object.__setattr__(self, "betas", tuple(self.betas))
        check(self)
        if self.warmup_steps > self.num_steps:
            raise ConfigError(
                f"warmup_steps is {self.warmup_steps}, beyond the {self.num_steps} steps of the run; choose fewer"
            )

    def for_ranks(self, ranks: int) -> "FitConfig":
        """The same with as many micro-batches as these ranks can share equally."""
        return replace(self, micro_batches=-(-self.micro_batches // ranks) * ranks)

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"betas": list(self.betas)}
