"""Pre-training: a model's weights on text, under a pattern or without one."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from sparsebert.errors import ConfigError
from sparsebert.model.heads import give_pattern, pattern_of
from sparsebert.patterns import Pattern, find
from sparsebert.runs.text import TextRun
from sparsebert.settings import Count, Positive
from sparsebert.text import TokenStore
from sparsebert.training import Objective
from sparsebert.training.recipes import find_recipe

PATTERN = "pattern."  # before the names of the arguments of a pattern's builder


@dataclass(frozen=True, kw_only=True)
class PretrainRun(TextRun):
    """Train on corrupted text (MLM and NSP)."""

    learning_rate: Positive = 1e-4  # at its peak
    pattern: Pattern | str | None = None  # a pattern, its file, or a builder's name; None: everyone to everyone
    pattern_arguments: dict[str, Any] = field(default_factory=dict)  # of the builder
    whole_words: bool = False  # corrupt all pieces of a word or none
    vocab_size: Count | None = None  # for the cost of a model from scratch without a corpus at hand

    UNNAMED = TextRun.UNNAMED | {"pattern_arguments"}
    APART = TextRun.APART | {"steps", "pattern", "pattern_arguments", "vocab_size"}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.pattern_arguments and (not isinstance(self.pattern, str) or Path(self.pattern).is_file()):
            name = next(iter(self.pattern_arguments))
            raise ConfigError(f"{PATTERN}{name} is given, but the pattern names no builder that it could apply to")

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Self:
        arguments = {name.removeprefix(PATTERN): one for name, one in given.items() if name.startswith(PATTERN)}
        others = {name: one for name, one in given.items() if not name.startswith(PATTERN)}
        return super().read({**others, "pattern_arguments": arguments})

    def objective(self, store: TokenStore, heads: int) -> Objective:
        # The pattern comes before the weights: one that cannot be is found out at once.
        pattern = self.found_pattern(heads)
        objective = self.pretraining(store)
        if pattern is not None:
            give_pattern(objective.model, pattern)
        return objective

    def found_pattern(self, heads: int) -> Pattern | None:
        """The pattern that the settings ask for, at the run's length."""
        if not isinstance(self.pattern, str):
            return self.pattern
        return find(self.pattern, self.length, heads, **self.pattern_arguments).at(self.length)

    def batch_sizes(self) -> dict[str, Any]:
        return super().batch_sizes() | {"whole_words": self.whole_words}

    def settings(self, store: TokenStore, objective: Objective) -> dict[str, Any]:
        pattern = pattern_of(objective.model)
        where = {"corpus": str(store.path), "pattern": self.pattern if isinstance(self.pattern, str) else None}
        digest = None if pattern is None else pattern.digest
        return {**super().settings(store, objective), "command": "pretrain", "pattern_digest": digest, "where": where}


def recipe_settings(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a recipe, for a run of which others are given; its epochs follow the corpus."""
    recipe = find_recipe(name)
    sizes = {key: given[key] for key in ("length", "batch_size") if key in given}
    corpus = given.get("corpus")
    tokens = recipe.epoch_tokens if corpus is None else TokenStore.open(corpus).num_tokens
    found = asdict(recipe) | {"steps": replace(recipe, **sizes).steps_for(tokens)}
    unused = {"epochs", "epoch_tokens"}
    if recipe.warmup_steps > given.get("steps", found["steps"]):
        unused.add("warmup_steps")  # it was meant for a longer run; a tenth of this one is taken instead
    return {key: value for key, value in found.items() if key not in unused}
