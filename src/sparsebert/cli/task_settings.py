"""`--set` of a run on a task: settings of the run, of the training loop, and of a gate where one is learned."""

from collections.abc import Mapping
from typing import Any

from sparsebert.cli.options import read_settings
from sparsebert.errors import ConfigError
from sparsebert.settings import declared
from sparsebert.tasks.config import FinetuneConfig
from sparsebert.training import FitConfig

# Two ways to say one thing: the second would silently win.
_EITHER_OR = (("num_epochs", "num_steps"), ("warmup", "warmup_steps"))


def read_task_settings(
    pairs: list[str] | None, options: Mapping[str, str], given: Mapping[str, Any], *others: type
) -> tuple[dict[str, Any], ...]:
    """Those of FinetuneConfig, those of FitConfig, and those of each other owner.

    given: what the command's own options say; None where they were left out.
    """
    owners = (FinetuneConfig, FitConfig, *others)
    known = {name: one for owner in reversed(owners) for name, one in declared(owner).items()}
    settings = read_settings(pairs, known, options)
    said = {name for name, value in given.items() if value is not None} | settings.keys()
    for one, other in _EITHER_OR:
        if one in said and other in said:
            raise ConfigError(f"{one} and {other} are both given; {other} would replace {one}, so leave one out")
    shares: list[dict[str, Any]] = []
    for owner in owners:
        shares.append({name: settings.pop(name) for name in declared(owner) if name in settings})
    return tuple(shares)
