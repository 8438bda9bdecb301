"""Whole configurations by name, and what they cost."""

from sparsebert.training.recipes.cost import Cost, cost_of, measured_flops
from sparsebert.training.recipes.recipe import Recipe, load_recipe, recipe_names

__all__ = ["Cost", "Recipe", "cost_of", "load_recipe", "measured_flops", "recipe_names"]
