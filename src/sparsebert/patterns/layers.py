"""Patterns with layers of their own: put together from one pattern a layer, and taken apart again.

Pattern itself is made by the patterns that come in: it calls this, and so cannot be imported here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from sparsebert.errors import PatternError

if TYPE_CHECKING:
    from sparsebert.patterns.pattern import Pattern


def per_layer(patterns: Sequence[Pattern]) -> Pattern:
    """One pattern a layer, the first layer's first; each has one head, or as many as the others."""
    if not patterns:
        raise PatternError("per_layer was given no pattern; expected one for every layer of the model")
    first = patterns[0]
    for number, one in enumerate(patterns):
        one.require_one_layer("per_layer")
        if (one.length, one.anchor) != (first.length, first.anchor):
            raise PatternError(
                f"layer {number} has length {one.length} and anchor {one.anchor!r}, layer 0 has length {first.length} "
                f"and anchor {first.anchor!r}; bring all to one length with at() and one anchor with anchored()"
            )
    if len(patterns) == 1:
        return first
    heads = max(one.heads for one in patterns)
    same = [one.with_heads(heads) for one in patterns]
    before = np.cumsum([0, *(one.kept for one in same[:-1])])
    starts = np.concatenate([one.row_starts + count for one, count in zip(same, before, strict=True)])
    keys = np.concatenate([one.keys for one in same])
    rules = [one.rule for one in patterns]
    rule = {"operation": "layers", "of": rules} if all(rules) else None
    return type(first)(heads, first.length, starts, keys, first.anchor, rule, layers=len(same))


def by_layer(operation: Callable[..., Pattern], *patterns: Pattern) -> Pattern:
    """An operation on patterns of one layer, done layer by layer; a pattern of one layer takes part in all."""
    layers = max(one.layers for one in patterns)
    for one in patterns:
        if one.layers not in (1, layers):
            raise PatternError(
                f"cannot combine a pattern of {one.layers} layers with one of {layers}; use patterns of 1 or {layers}"
            )
    return per_layer([operation(*(one.layer(number) for one in patterns)) for number in range(layers)])


def split(pattern: Pattern) -> tuple[Pattern, ...]:
    """The patterns of the layers; those that keep the same are one and the same object, and share what is cached."""
    heads, layers = pattern.heads, []
    found: dict[tuple[str, str], Pattern] = {}
    for number in range(pattern.layers):
        starts = pattern.row_starts[number * heads : (number + 1) * heads]
        keys = pattern.keys[starts[0, 0] : starts[-1, -1]]
        # Every rule of a pattern with layers is one rule a layer: operations are done layer by layer.
        rule = pattern.rule["of"][number] if pattern.rule else None
        one = type(pattern)(heads, pattern.length, starts - starts[0, 0], keys, pattern.anchor, rule)
        layers.append(found.setdefault((one.digest, str(rule)), one))
    return tuple(layers)
