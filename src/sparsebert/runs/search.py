"""What searches share, on text or on a task: the gate's settings, the gate, and how it is learned and drawn."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

from sparsebert import gates
from sparsebert.errors import ConfigError, FileError
from sparsebert.files import read_bytes
from sparsebert.gates import Diagonal, Gate, Settings, preset
from sparsebert.gates.settings import refuse_unused
from sparsebert.patterns import Anchor, Pattern
from sparsebert.patterns.figures import head_grid, save_figure
from sparsebert.runs.run import RunSettings
from sparsebert.settings import InnerShare, NotNegative, Share
from sparsebert.training import FitConfig, Objective
from sparsebert.training.figures import sparsity_figure
from sparsebert.training.gated import Frozen, Gated


@dataclass(frozen=True, kw_only=True)
class Search(RunSettings):
    """A gate that is learned beside the weights and frozen at the end; either a sparsity or a penalty is given."""

    kind: Literal["structured", "unstructured"] = "structured"  # lines |i - j| a head, or single entries
    sparsity: InnerShare | None = None  # target
    penalty: NotNegative = 0.0  # lambda of the paper
    preset: str = "default"
    levels: Literal[1, 2] = 1  # 2: alpha on batches of its own (first-order DARTS)
    diagonal: Diagonal = "learned"  # when the gate is frozen
    assured: Share | None = None  # when it is frozen to a sparsity: what every head keeps of an even share; None: half
    gate: dict[str, Any] = field(default_factory=dict)  # settings that differ from the preset

    PARTS: ClassVar[Mapping[str, type]] = {"gate": Settings, "fit": FitConfig}
    FIGURES = ("pattern.png", "sparsity.png")

    def __post_init__(self) -> None:
        super().__post_init__()
        preset(self.preset, **self.gate)
        refuse_unused(self.kind, self.gate)
        if self.sparsity is None and not self.penalty:
            raise ConfigError("neither a sparsity nor a penalty is given; without either nothing would be dropped")
        if self.sparsity is not None and self.penalty:
            raise ConfigError("both a sparsity and a penalty are given; a target sets the penalty, so leave one out")

    def new_gate(self, length: int, heads: int, *, steps: int, seed: int, anchor: Anchor) -> Gate:
        aim: dict[str, Any] = {"sparsity": self.sparsity, "penalty": self.penalty, "settings": self.preset}
        return gates.KINDS[self.kind](length, heads, steps=steps, seed=seed, anchor=anchor, **aim, **self.gate)

    def searching(self, inner: Objective, gate: Gate, seed: int, second: Objective | None) -> Frozen:
        assured = 0.5 if self.assured is None else self.assured
        return Frozen(Gated(inner, gate, seed=seed, second=second), diagonal=self.diagonal, assured=assured)

    def draw(self, out: Path) -> None:
        """All heads of the pattern, and the path of the sparsity."""
        save_figure(head_grid(Pattern.load(out / "pattern.safetensors")), out / "pattern.png")
        save_figure(sparsity_figure(read_metrics(out), self.sparsity), out / "sparsity.png")


def read_metrics(out: Path) -> list[dict[str, Any]]:
    """The lines of metrics.jsonl."""
    path = out / "metrics.jsonl"
    try:
        return [json.loads(line) for line in read_bytes(path).splitlines()]
    except (ValueError, RecursionError) as error:
        raise FileError(f"{path} is damaged ({error}); restore it from a copy") from error
