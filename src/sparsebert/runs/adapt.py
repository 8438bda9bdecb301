"""Adapting: a model's weights learn to live under a pattern, with the dense model as their teacher."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sparsebert.errors import ConfigError
from sparsebert.model import load_model
from sparsebert.model.heads import give_pattern, pattern_of
from sparsebert.patterns import Pattern
from sparsebert.progress import for_this_terminal
from sparsebert.runs.distilled import DistilledRun
from sparsebert.runs.under_pattern import UnderPattern
from sparsebert.text import TokenStore, source_of
from sparsebert.training import Objective


@dataclass(frozen=True, kw_only=True)
class AdaptRun(UnderPattern, DistilledRun):
    """Distillation on plain text: no labels, no new head."""

    def build(self, store: TokenStore, shape: Mapping[str, Any]) -> Objective:
        # The pattern comes before the weights: one that cannot be is found out at once.
        pattern = self.found_pattern(int(shape["num_attention_heads"]))
        objective = self.distillation(store, trains_weights=True)
        own = pattern_of(objective.model)
        if pattern is None and own is None:
            raise ConfigError(f"no pattern is given and {self.model} has none of its own; there is nothing to adapt to")
        if pattern is None and own is not None and own.length < self.length:
            pattern = own.at(self.length)
        if pattern is not None:
            give_pattern(objective.model, pattern)
        return objective

    def settings(self, store: TokenStore, objective: Objective) -> dict[str, Any]:
        return {**super().settings(store, objective), "command": "adapt"}


def adapt(
    model: str,
    corpus: Path | str,
    out: Path | str,
    *,
    steps: int,
    pattern: Pattern | str | None = None,
    **settings: Any,
) -> Any:
    """The encoder `model` under a pattern, after so many steps of distillation by its dense self.

    model: a folder, a run or a name. corpus: what `sparsebert prepare` left. out: the run folder; the same call goes on
    there. pattern: one, its file or a builder's name; None: the model's own. settings: any other one of AdaptRun.
    """
    run = AdaptRun.read({"model": model, "corpus": Path(corpus), "steps": steps, "pattern": pattern, **settings})
    run.make(Path(out), for_this_terminal("adapt"))
    return load_model(source_of(str(out)), "none")
