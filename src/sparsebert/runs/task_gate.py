"""Learning a pattern for one task: a gate on the task's own loss, for tasks differ in how much attention they need."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sparsebert.patterns import Anchor, Pattern
from sparsebert.runs.finetune import TaskRun
from sparsebert.runs.run import Prepared
from sparsebert.runs.search import Search
from sparsebert.tasks.objective import TaskObjective
from sparsebert.training import Objective


@dataclass(frozen=True, kw_only=True)
class TaskSearchRun(Search, TaskRun):
    """Fine-tuning with a gate beside the weights, which is then frozen; the model is scored under its pattern."""

    @property
    def is_taught(self) -> bool:
        return self.teacher is not None

    def prepared(self, out: Path, own: Pattern | None) -> Prepared:
        prepared = super().prepared(out, own)
        return Prepared(prepared.objective, prepared.config, prepared.settings | self.gate_settings())

    def gate_settings(self) -> dict[str, Any]:
        names = ("kind", "sparsity", "penalty", "preset", "levels", "diagonal")
        gate = {**{name: getattr(self, name) for name in names}, "changes": self.gate}
        # Later settings, where they are used: runs of earlier versions still go on.
        gate |= {name: getattr(self, name) for name in ("keys", "layers", "assured") if getattr(self, name) is not None}
        # Earlier versions drew a sample a micro-batch: their unfinished runs cannot go on, and this says why.
        return {"command": "search", "gate": gate, "a_sample": "every step"}

    def objective(self, tuned: TaskObjective, steps: int) -> Objective:
        # Inputs of tasks are short: the border follows the true last token unless the paper's reading is asked for.
        anchor: Anchor = "position" if self.anchor == "position" else "token"
        shape = tuned.model.config.to_dict()
        gate = self.new_gate(int(self.length or 0), shape, steps=steps, seed=self.seed, anchor=anchor)
        second = tuned.reordered(self.seed + 1) if self.levels == 2 else None
        return self.searching(tuned, gate, self.seed, second)
