"""Learning a gate inside a pattern: what of its units lies inside, and which patterns a gate cannot be inside of."""

from dataclasses import dataclass
from typing import Protocol

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
    sizes: Int64[Tensor, "all_heads units"]  # entries of each unit that lie inside
    fixed: int  # entries of all heads that lie inside and are kept whatever is learned
    fixed_on_diagonal: int


class Units(Protocol):
    """What is asked of a gate here."""

    length: int
    heads: int
    layers: int
    anchor: Anchor
    sparsity: float | None
    sizes: Tensor

    def units_of(self, entries: Entries) -> np.ndarray: ...


def scope_of(pattern: Pattern, gate: Units) -> Scope:
    """Of a gate that check_scope() let pass."""
    counts, fixed, fixed_on_diagonal = [], 0, 0
    for layer, head in np.ndindex(gate.layers, gate.heads):
        entries = pattern.layer(layer).entries(head % pattern.heads)
        found = gate.units_of(entries)
        counts.append(np.bincount(found[found >= 0], minlength=len(gate.sizes)))
        always = entries[found < 0]
        fixed += len(always)
        fixed_on_diagonal += int((always // pattern.length == always % pattern.length).sum())
    return Scope(pattern, torch.from_numpy(np.stack(counts).astype(np.int64)), fixed, fixed_on_diagonal)


def check_scope(pattern: Pattern, gate: Units) -> None:
    """Refuse a pattern that a gate cannot be learned inside of."""
    length, heads, anchor, sparsity = gate.length, gate.heads, gate.anchor, gate.sparsity
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
    if pattern.layers not in (1, gate.layers):
        raise GateError(
            f"the gate has {gate.layers} layers but the pattern it is to be learned inside of {pattern.layers}; "
            f"make a gate of {pattern.layers} layers"
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
