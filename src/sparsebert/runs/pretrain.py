"""Pre-training: a model's weights on text, under a pattern or without one."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from sparsebert.model.heads import give_pattern
from sparsebert.runs.under_pattern import UnderPattern
from sparsebert.settings import Count, Positive
from sparsebert.text import TokenStore
from sparsebert.training import Objective
from sparsebert.training.recipes import find_recipe


@dataclass(frozen=True, kw_only=True)
class PretrainRun(UnderPattern):
    """Train on corrupted text (MLM and NSP)."""

    learning_rate: Positive = 1e-4  # at its peak
    whole_words: bool = False  # corrupt all pieces of a word or none
    vocab_size: Count | None = None  # for the cost of a model from scratch without a corpus at hand

    APART = UnderPattern.APART | {"vocab_size"}

    def build(self, store: TokenStore, shape: Mapping[str, Any]) -> Objective:
        # The pattern comes before the weights: one that cannot be is found out at once.
        pattern = self.found_pattern(int(shape["num_attention_heads"]))
        objective = self.pretraining(store)
        if pattern is not None:
            give_pattern(objective.model, pattern)
        return objective

    def batch_sizes(self) -> dict[str, Any]:
        return super().batch_sizes() | {"whole_words": self.whole_words}

    def settings(self, store: TokenStore, objective: Objective) -> dict[str, Any]:
        return {**super().settings(store, objective), "command": "pretrain"}


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
