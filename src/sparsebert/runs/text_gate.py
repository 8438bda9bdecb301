"""Learning who needs whom on text: the importance analysis, and the search for a sparse pattern."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

from sparsebert import gates
from sparsebert.errors import ConfigError
from sparsebert.gates import Settings, preset
from sparsebert.gates.settings import refuse_unused
from sparsebert.importance.figures import importance_figure
from sparsebert.importance.saved import load_importance
from sparsebert.patterns import Anchor
from sparsebert.patterns.figures import save_figure
from sparsebert.runs.search import Search
from sparsebert.runs.text import TextRun
from sparsebert.settings import ShareBelowOne
from sparsebert.text import TokenStore
from sparsebert.training import FitConfig, Objective
from sparsebert.training.gated import Gated
from sparsebert.training.importance import LearnedImportance, TrainedAttention
from sparsebert.training.recorded import Recorded

_TITLES = {"soft": "learned importance P", "attention": "trained attention maps"}


@dataclass(frozen=True, kw_only=True)
class ImportanceRun(TextRun):
    """How much every entry matters: a soft P learned beside the weights, or the attention maps of trained weights."""

    kind: Literal["soft", "attention"] = "soft"
    anchor: Anchor = "position"
    head_start: ShareBelowOne = 0.0  # soft: share of the steps in which only the weights learn
    gate: dict[str, Any] = field(default_factory=dict)  # settings of the gate that differ from its own

    PARTS: ClassVar[Mapping[str, type]] = {"gate": Settings, "fit": FitConfig}
    FIGURES = ("importance.png",)
    RATE, WARMUP = 3e-4, 20

    def __post_init__(self) -> None:
        super().__post_init__()
        preset("default", **self.gate)
        refuse_unused(self.kind, self.gate)
        given = [*self.gate, *["head_start"] * (self.head_start > 0), *["anchor"] * (self.anchor != "position")]
        if self.kind == "attention" and given:
            raise ConfigError(f"{given[0]} is given, but attention maps need no gate; leave it out")

    def objective(self, store: TokenStore, heads: int) -> Objective:
        if self.kind == "attention":
            return TrainedAttention(self.pretraining(store), seed=self.seed)
        gate = gates.Soft(self.length, heads, steps=self.steps, seed=self.seed, anchor=self.anchor, **self.gate)
        from_step = int(self.head_start * self.steps)
        return LearnedImportance(Gated(self.pretraining(store), gate, seed=self.seed, from_step=from_step))

    def settings(self, store: TokenStore, objective: Objective) -> dict[str, Any]:
        # The last four stand for settings that importance runs had in earlier versions: those still go on.
        before = {"penalty": 0.0, "preset": "default", "levels": 1, "diagonal": "learned"}
        return {"command": "importance", **super().settings(store, objective), **before}

    def draw(self, out: Path) -> None:
        title = f"{_TITLES[self.kind]}, mean over heads after normalisation"
        save_figure(importance_figure(load_importance(out), title), out / "importance.png")


@dataclass(frozen=True, kw_only=True)
class SearchRun(Search, TextRun):
    """A sparse pattern learned on text."""

    anchor: Anchor = "position"

    RATE, WARMUP = 5e-5, 20  # the weights only follow

    def objective(self, store: TokenStore, heads: int) -> Objective:
        # The gate comes before the weights: a size it cannot have is found out at once.
        gate = self.new_gate(self.length, heads, steps=self.steps, seed=self.seed, anchor=self.anchor)
        first = self.pretraining(store)
        second = None
        if self.levels == 2:
            second = self.on_batches(store, first.model, self.batches(store, self.seed + 1))
        return Recorded(self.searching(first, gate, self.seed, second), {"task": "search"})

    def settings(self, store: TokenStore, objective: Objective) -> dict[str, Any]:
        # Searches had a head start, of 0, in earlier versions: those still go on.
        return {"command": "search", **super().settings(store, objective), "head_start": 0.0}
