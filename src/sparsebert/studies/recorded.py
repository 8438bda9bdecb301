"""Recorded: any objective, with what its run stands for written into result.json."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sparsebert.training import Losses, Objective

# Writes files beside those of the objective, before result.json says that all is there.
Extra = Callable[[Path], Mapping[str, Any]]
# Words of an objective about itself that mean a task's score to whoever reads a study.
_OWN_WORDS = ("task", "metric", "score", "verdict", "table")


class Recorded(Objective):
    """Passes everything on to the objective inside, and adds fields at the end."""

    def __init__(self, inner: Any, fields: Mapping[str, Any], *, scores_task: bool, extra: Extra | None = None) -> None:
        super().__init__()
        self.inner, self.fields, self.scores_task, self.extra = inner, dict(fields), scores_task, extra

    def forward(self, step: int, micro: int) -> Losses:
        self.inner.micro_batches = self.micro_batches
        losses: Losses = self.inner(step, micro)
        return losses

    def parameter_groups(self) -> list[dict[str, Any]]:
        groups: list[dict[str, Any]] = self.inner.parameter_groups()
        return groups

    def after_step(self, step: int) -> None:
        self.inner.after_step(step)

    def evaluate(self, step: int) -> dict[str, float]:
        figures: dict[str, float] = self.inner.evaluate(step)
        return figures

    def finish(self, folder: Path) -> dict[str, Any]:
        """The inner objective's files and fields; only a task's own run speaks of a task and a score."""
        fields = self.inner.finish(folder)
        if not self.scores_task:
            fields = {name: value for name, value in fields.items() if name not in _OWN_WORDS}
        added = {} if self.extra is None else dict(self.extra(folder))
        return {**fields, **added, **self.fields}
