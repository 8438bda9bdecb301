"""How long an input may be: positions that a model has, and a pattern or a gate that may end before them."""

from typing import Any

from sparsebert.model.plan import plan_of
from sparsebert.model.positions import positions_of


def longest_input(model: Any) -> int:
    """Tokens that a model takes: its positions, or fewer where its gate ends, or its pattern, which has no rule."""
    plan, positions = plan_of(model), positions_of(model)
    if plan is None:
        return positions
    if plan.gate is not None:
        return min(positions, plan.gate.length)
    return positions if plan.pattern is None or plan.pattern.rule is not None else min(positions, plan.pattern.length)
