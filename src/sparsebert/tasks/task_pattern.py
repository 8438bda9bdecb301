"""A pattern that fits a task's inputs: found by name or file, brought to the length, anchored."""

from typing import Literal

import numpy as np

from sparsebert.errors import PatternError
from sparsebert.patterns import Pattern, find

Anchoring = Literal["auto", "token", "position"]


def pattern_for(
    given: Pattern | str | None, *, length: int, heads: int, anchor: Anchoring = "auto", what: str = "the task"
) -> Pattern | None:
    """A pattern for inputs up to `length` tokens.

    given: a pattern, a file, or a builder's name. anchor: where the last row and column sit in a shorter input; auto
    is the true last token for patterns with a border, whose last row and column mean the last token, and the
    position for all others.
    """
    if given is None:
        return None
    if isinstance(given, str):
        given = find(given, length, heads)
    if given.length < length:
        if given.rule is None:
            raise PatternError(
                f"the pattern holds single entries for {given.length} positions and {what} reads {length} tokens; "
                f"choose length {given.length} for shorter inputs, or a pattern that a rule rebuilds at {length} "
                "(a named one, or one made of offsets)"
            )
        given = given.at(length)
    if anchor == "auto":
        return given.anchored("token") if has_border(given) else given
    return given.anchored(anchor)


def has_border(pattern: Pattern) -> bool:
    """Whether every head keeps its whole last row and column, the diagonal aside."""
    last = pattern.length - 1
    inner = np.arange(last)
    for _, _, entries in pattern.each_head():
        row, column = entries[entries // pattern.length == last], entries[entries % pattern.length == last]
        if not np.isin(inner, row % pattern.length).all() or not np.isin(inner, column // pattern.length).all():
            return False
    return True
