"""Sizes that a gate can have, and whether its values fit into memory."""

from sparsebert.errors import GateError
from sparsebert.memory import require_memory


def require_room(needed: float, what: str) -> None:
    """Called before a gate's values are made."""
    require_memory(needed, f"a gate with {what}", "choose a shorter length", GateError)


def check_sizes(length: int, heads: int, layers: int, sparsity: float | None, penalty: float, steps: int) -> None:
    """Called before a gate is made."""
    if length < 3 or heads < 1 or layers < 1 or steps < 1:
        raise GateError(
            f"a gate of length {length}, {heads} heads, {layers} layers and {steps} steps cannot be; at least 3, 1, 1 "
            "and 1"
        )
    if sparsity is not None and penalty:
        raise GateError("both a penalty and a target sparsity are given; the target sets the penalty, so leave one out")
    if sparsity is not None and not 0.0 < sparsity < 1.0:
        raise GateError(f"the target sparsity is {sparsity}; it must lie between 0 and 1")
    if not penalty >= 0.0:
        raise GateError(f"the penalty is {penalty}; it must be at least 0")
