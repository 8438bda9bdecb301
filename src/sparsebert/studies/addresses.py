"""Which settings enter a run's address: founding ones always, later ones only where they differ from their default.

Recorded runs are known by hashes over the fields that these classes had when the first of them were made. A field that
is added later leaves those hashes as they are while it is at its default, so nothing has to be made again. The lists
below are history: a new field is not added to them.
"""

from collections.abc import Set
from dataclasses import fields, is_dataclass
from typing import Any

from sparsebert.gates.schedules import Schedule
from sparsebert.gates.settings import Settings
from sparsebert.tasks.config import FinetuneConfig
from sparsebert.training.config import FitConfig


def _names(words: str) -> frozenset[str]:
    return frozenset(words.split())


FOUNDING: dict[type, frozenset[str]] = {
    FitConfig: _names(
        "num_steps seed warmup_steps schedule betas epsilon max_grad_norm micro_batches precision evaluate_every "
        "checkpoint_every keep_checkpoints max_skipped peer_timeout tensorboard"
    ),
    FinetuneConfig: _names(
        "task data model length stride batch_size num_epochs learning_rate weight_decay warmup max_rows max_dev_rows "
        "subset_seed skip_bad_rows anchor seed"
    ),
    Settings: _names(
        "relaxation c sampling distribution temperature penalty_on rate entry_share initial_density initial_noise "
        "border pooled symmetric lead dual_rate stiffness path explore freezing"
    ),
    Schedule: _names("kind start end share"),
}


def addressed(settings: Any, default: Any, apart: Set[str] = frozenset()) -> dict[str, Any]:
    """The settings that enter an address, as JSON values.

    default: the same dataclass with nothing chosen. apart: fields that are known in another way or change no result.
    """
    founding = frozenset[str]().union(*(FOUNDING.get(one, ()) for one in type(settings).__mro__))
    entering: dict[str, Any] = {}
    for one in fields(settings):
        value, otherwise = getattr(settings, one.name), getattr(default, one.name)
        if one.name not in apart and (one.name in founding or value != otherwise):
            entering[one.name] = addressed(value, otherwise) if is_dataclass(value) else _as_json(value)
    return entering


def _as_json(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
