"""Recipes: the settings of whole pre-training runs, by name."""

from dataclasses import dataclass

from sparsebert.settings import refuse_unknown


@dataclass(frozen=True, kw_only=True)
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


_RECIPES = {
    # The paper's pre-training: BERT-base on English Wikipedia and BooksCorpus, with the settings of Devlin et al.
    # Use it with a corpus prepared with --train-vocab 30000.
    "paper": Recipe(
        model="scratch:base",
        vocab_size=30_000,
        length=128,
        batch_size=256,
        learning_rate=1e-4,
        warmup_steps=10_000,
        weight_decay=0.01,
        dropout=0.1,
        epochs=40,
        # 2,500 and 800 million words; Devlin et al. count words and tokens alike when they speak of 40 epochs.
        epoch_tokens=3_300_000_000,
    ),
}


def find_recipe(name: str) -> Recipe:
    refuse_unknown(name, _RECIPES, what="there is no recipe called")
    return _RECIPES[name]
