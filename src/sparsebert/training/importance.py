"""The importance analysis (Section 3.1): a soft P learned beside the weights, and trained attention maps beside it."""

from pathlib import Path
from typing import Any

from sparsebert import gates
from sparsebert.gates import Soft
from sparsebert.importance.categories import tabulate
from sparsebert.importance.saved import GATE, importance_of, save_maps
from sparsebert.model import attach, detach
from sparsebert.training.attention_maps import average_attention
from sparsebert.training.objective import Losses, Objective
from sparsebert.training.pretraining import PretrainingObjective


class ImportanceObjective(Objective):
    """Pre-training under a soft gate without a penalty; ends with the table of categories.

    gate_from: the step from which on the gate learns. Before it every entry weighs the same, so that this is plain
    pre-training: what a gate learns under heads that know nothing yet is noise.
    """

    def __init__(self, pretraining: PretrainingObjective, gate: Soft, *, seed: int, gate_from: int = 0) -> None:
        super().__init__()
        self.pretraining, self.gate, self.seed, self.gate_from = pretraining, gate, seed, gate_from
        attach(pretraining.model, gate, inside=False)

    def forward(self, step: int, micro: int) -> Losses:
        self.pretraining.micro_batches = self.micro_batches
        self.gate.requires_grad_(step >= self.gate_from)
        self.gate.resample(self.seed, step)
        losses: Losses = self.pretraining(step, micro)
        return losses

    def parameter_groups(self) -> list[dict[str, Any]]:
        rate = self.pretraining.learning_rate
        return [*self.pretraining.parameter_groups(), *self.gate.parameter_groups(rate)]

    def evaluate(self, step: int) -> dict[str, float]:
        """Held-out figures under P itself."""
        return self.pretraining.evaluate(step)

    def finish(self, folder: Path) -> dict[str, Any]:
        gates.save(self.gate, folder / GATE)
        detach(self.pretraining.model)
        table = tabulate(importance_of(self.gate), self.seed)
        fields = {"task": "importance", "method": "gate", "table": table.as_json(), "verdict": table.verdict()}
        return {**self.pretraining.finish(folder), **fields}


class AttentionObjective(Objective):
    """Pre-training as it is; ends with the trained attention maps and their table of categories."""

    def __init__(self, pretraining: PretrainingObjective, *, seed: int) -> None:
        super().__init__()
        self.pretraining, self.seed = pretraining, seed

    def forward(self, step: int, micro: int) -> Losses:
        self.pretraining.micro_batches = self.micro_batches
        losses: Losses = self.pretraining(step, micro)
        return losses

    def parameter_groups(self) -> list[dict[str, Any]]:
        return self.pretraining.parameter_groups()

    def evaluate(self, step: int) -> dict[str, float]:
        return self.pretraining.evaluate(step)

    def finish(self, folder: Path) -> dict[str, Any]:
        pretraining = self.pretraining
        maps = average_attention(pretraining.model, pretraining.held_out, pretraining.num_held_out).cpu().numpy()
        save_maps(folder, maps)
        table = tabulate(maps, self.seed)
        fields = {"task": "importance", "method": "attention", "table": table.as_json(), "verdict": table.verdict()}
        return {**pretraining.finish(folder), **fields}
