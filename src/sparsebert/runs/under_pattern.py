"""What runs share that train weights under a pattern: where the pattern comes from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from sparsebert.errors import ConfigError
from sparsebert.model.heads import pattern_of
from sparsebert.patterns import Pattern, find
from sparsebert.runs.text import TextRun
from sparsebert.text import TokenStore
from sparsebert.training import Objective
from sparsebert.training.starting_points import saved_pattern

PATTERN = "pattern."  # before the names of the arguments of a pattern's builder


@dataclass(frozen=True, kw_only=True)
class UnderPattern(TextRun):
    """Weights trained on text under a pattern."""

    pattern: Pattern | str | None = None  # a pattern, its file, or a builder's name; None: the model's own, if any
    pattern_arguments: dict[str, Any] = field(default_factory=dict)  # of the builder

    UNNAMED = TextRun.UNNAMED | {"pattern_arguments"}
    APART = TextRun.APART | {"steps", "pattern", "pattern_arguments"}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.pattern_arguments and (not isinstance(self.pattern, str) or Path(self.pattern).is_file()):
            name = next(iter(self.pattern_arguments))
            raise ConfigError(f"{PATTERN}{name} is given, but the pattern names no builder that it could apply to")

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Self:
        arguments = {name.removeprefix(PATTERN): one for name, one in given.items() if name.startswith(PATTERN)}
        others = {name: one for name, one in given.items() if not name.startswith(PATTERN)}
        return super().read({**others, "pattern_arguments": arguments})

    def found_pattern(self, heads: int) -> Pattern | None:
        """The pattern that the settings ask for, at the run's length; without a rule a longer one serves as it is."""
        if not isinstance(self.pattern, str):
            return self.pattern
        found = find(self.pattern, self.length, heads, **self.pattern_arguments)
        return found if found.rule is None and found.length > self.length else found.at(self.length)

    def density(self, heads: int) -> float:
        """The share of attention's entries that is computed on rows of the run's length; no weights are loaded."""
        pattern = self.found_pattern(heads) or saved_pattern(self.model)
        if pattern is None:
            return 1.0
        return (pattern.crop(self.length) if pattern.length > self.length else pattern.at(self.length)).density

    def settings(self, store: TokenStore, objective: Objective) -> dict[str, Any]:
        pattern = pattern_of(objective.model)
        where = {"corpus": str(store.path), "pattern": self.pattern if isinstance(self.pattern, str) else None}
        digest = None if pattern is None else pattern.digest
        return {**super().settings(store, objective), "pattern_digest": digest, "where": where}
