"""The importance analysis (Section 3.1): a soft P learned beside the weights, and trained attention maps beside it."""

from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from sparsebert import gates
from sparsebert.errors import FileError
from sparsebert.files import open_sealed_tensors, read_bytes, seal_tensors, write_atomic
from sparsebert.gates import Soft
from sparsebert.model import attach, detach
from sparsebert.training.attention_maps import average_attention
from sparsebert.training.categories import tabulate
from sparsebert.training.objective import Losses, Objective
from sparsebert.training.pretraining import PretrainingObjective

ATTENTION = "attention.safetensors"


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
        gates.save(self.gate, folder / "gate.safetensors")
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
        write_atomic(folder / ATTENTION, seal_tensors({"maps": maps}, {"kind": "attention maps", "format": 1}))
        table = tabulate(maps, self.seed)
        fields = {"task": "importance", "method": "attention", "table": table.as_json(), "verdict": table.verdict()}
        return {**pretraining.finish(folder), **fields}


def importance_of(gate: gates.Gate) -> Float[np.ndarray, "heads n n"]:
    """P of a gate, without noise."""
    return gate.eval().values().detach().double().cpu().numpy()


def load_importance(run: Path) -> Float[np.ndarray, "heads n n"]:
    """P, or the averaged attention maps, of a finished importance run."""
    if (run / "gate.safetensors").is_file():
        gate = gates.load(run / "gate.safetensors")
        if not isinstance(gate, Soft):
            raise FileError(
                f"{run} is a search, which has found its pattern already (pattern.safetensors); "
                "expected a finished importance run"
            )
        return importance_of(gate)
    if not (run / ATTENTION).is_file():
        raise FileError(f"{run} holds neither gate.safetensors nor {ATTENTION}; expected a finished importance run")
    tensors, about = open_sealed_tensors(read_bytes(run / ATTENTION), run / ATTENTION)
    if about.get("kind") != "attention maps" or "maps" not in tensors:
        raise FileError(f"{run / ATTENTION} holds no attention maps; run importance --method attention again")
    return tensors["maps"]
