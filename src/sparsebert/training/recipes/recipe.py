"""A recipe: the settings of a whole pre-training run, in a TOML file."""

import tomllib
from dataclasses import dataclass
from importlib import resources

from sparsebert.errors import ConfigError


@dataclass(frozen=True)
class Recipe:
    """What a recipe fills in; anything that is given comes before it."""

    model: str
    length: int  # tokens in a row
    batch_size: int  # rows a step
    learning_rate: float
    warmup_steps: int
    weight_decay: float
    dropout: float
    vocab_size: int  # of the corpus it was made for
    epochs: float
    epoch_tokens: int  # of the corpus it was made for

    def steps_for(self, corpus_tokens: int) -> int:
        """Optimiser steps in which the recipe's epochs of a corpus go by."""
        return max(1, round(self.epochs * corpus_tokens / (self.batch_size * self.length)))


def recipe_names() -> list[str]:
    folder = resources.files(__package__)
    return sorted(path.name.removesuffix(".toml") for path in folder.iterdir() if path.name.endswith(".toml"))


def load_recipe(name: str) -> Recipe:
    if name not in recipe_names():
        raise ConfigError(f"there is no recipe called {name!r}; expected {' or '.join(recipe_names())}")
    text = (resources.files(__package__) / f"{name}.toml").read_text(encoding="utf-8")
    return Recipe(**tomllib.loads(text))
