"""Pruning: a pattern from what an importance run learned (two-stage), or the random one to compare it with."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sparsebert import patterns
from sparsebert.errors import ConfigError
from sparsebert.importance.saved import load_importance
from sparsebert.patterns import Pattern
from sparsebert.settings import Count, Share, check


@dataclass(frozen=True, kw_only=True)
class PruneRun:
    """Every head loses its least important entries, or as many at random; nothing is trained."""

    sparsity: Share  # of every head
    method: Literal["p", "random"] = "p"
    importance: Path | None = None  # a finished importance run
    length: Count | None = None  # of a random pattern; None: that of the importance run
    heads: Count | None = None
    seed: int = 0  # of a random pattern

    def __post_init__(self) -> None:
        check(self)
        if self.importance is None and (self.method == "p" or self.length is None or self.heads is None):
            raise ConfigError("no importance run is given; pruning needs one, to learn from or to take its size")

    def pattern(self) -> Pattern:
        if self.importance is None:
            return patterns.random(self.length or 0, self.heads or 0, sparsity=self.sparsity, seed=self.seed)
        values = load_importance(self.importance)
        if self.method == "p":
            return patterns.prune(values, self.sparsity)
        heads, length, _ = values.shape
        return patterns.random(length, heads, sparsity=self.sparsity, seed=self.seed)
