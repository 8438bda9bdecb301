"""Learning a gate inside a pattern: what of its units lies inside, and which patterns a gate cannot be inside of."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int64
from torch import Tensor

from sparsebert.errors import GateError
from sparsebert.patterns import Anchor, Pattern
from sparsebert.patterns.entries import Entries


@dataclass(frozen=True)
class Scope:
    """A pattern that a gate is learned inside of, counted in the gate's units."""

    pattern: Pattern
    sizes: Int64[Tensor, "heads units"]  # entries of each unit that lie inside
    fixed: int  # entries of all heads that lie inside and are kept whatever is learned
    fixed_on_diagonal: int


def scope_of(pattern: Pattern, units_of: Callable[[Entries], np.ndarray], heads: int, units: int) -> Scope:
    """units_of: the unit of each of some entries, -1 where it is always kept."""
    counts, fixed, fixed_on_diagonal = [], 0, 0
    for head in range(heads):
        entries = pattern.entries(head % pattern.heads)
        found = units_of(entries)
        counts.append(np.bincount(found[found >= 0], minlength=units))
        always = entries[found < 0]
        fixed += len(always)
        fixed_on_diagonal += int((always // pattern.length == always % pattern.length).sum())
    return Scope(pattern, torch.from_numpy(np.stack(counts).astype(np.int64)), fixed, fixed_on_diagonal)


def check_scope(pattern: Pattern, length: int, heads: int, anchor: Anchor, sparsity: float | None) -> None:
    """Refuse a pattern that a gate of this kind cannot be learned inside of."""
    if pattern.length != length:
        raise GateError(
            f"the gate covers {length} positions but the pattern it is to be learned inside of {pattern.length}; "
            f"give the model pattern.at({length}) first"
        )
    if pattern.heads not in (1, heads):
        raise GateError(
            f"the gate has {heads} heads but the pattern it is to be learned inside of {pattern.heads}; "
            f"make a gate of {pattern.heads} heads"
        )
    if pattern.anchor != anchor:
        raise GateError(
            f"the gate has anchor {anchor!r} but the pattern it is to be learned inside of {pattern.anchor!r}; "
            f"make a gate with anchor={pattern.anchor!r}"
        )
    if sparsity is not None and sparsity <= pattern.sparsity:
        raise GateError(
            f"the pattern is {pattern.sparsity:.4f} sparse already and the gate's target is {sparsity:.4f}; "
            "ask for a higher sparsity inside it, or attach(model, gate, inside=False) to learn in place of it"
        )
