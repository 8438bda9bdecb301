import pytest

from sparsebert.errors import ConfigError
from sparsebert.training.recipes import find_recipe


def test_the_papers_recipe_is_that_of_devlin_et_al_at_length_128() -> None:
    recipe = find_recipe("paper")
    assert (recipe.model, recipe.length, recipe.batch_size, recipe.vocab_size) == ("scratch:base", 128, 256, 30000)
    assert (recipe.learning_rate, recipe.warmup_steps, recipe.weight_decay) == (1e-4, 10_000, 0.01)
    assert (recipe.dropout, recipe.epochs) == (0.1, 40)


def test_steps_follow_from_epochs_and_the_size_of_the_corpus() -> None:
    assert find_recipe("paper").steps_for(256 * 128 * 10) == 400


def test_an_unknown_recipe_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(ConfigError, match="expected one of paper"):
        find_recipe("cake")
