"""Patterns that a few words describe, built at any length."""

from collections.abc import Mapping
from typing import Any

from sparsebert.patterns import Pattern, full, named


def stated_pattern(words: Mapping[str, Any], length: int, heads: int) -> Pattern:
    """{"name": "star", "drop_diagonal": True}, or {"random_drop": 2}: draw number 2 of as many as the diagonal has."""
    if "random_drop" in words:
        return full(length, heads).random_drop(length, seed=int(words["random_drop"]))
    pattern = named(str(words["name"]), length, heads)
    return pattern.without_diagonal() if words["drop_diagonal"] else pattern
