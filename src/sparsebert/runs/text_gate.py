"""Learning who needs whom on text: the importance analysis, and the search for a sparse pattern."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from sparsebert import gates
from sparsebert.errors import ConfigError
from sparsebert.gates import Settings, preset
from sparsebert.gates.settings import refuse_unused
from sparsebert.importance.figures import importance_figure
from sparsebert.importance.saved import load_importance
from sparsebert.patterns import Anchor
from sparsebert.patterns.figures import save_figure
from sparsebert.runs.distilled import FOR_BOTH, FOR_SENTENCES, DistilledRun, Lead
from sparsebert.runs.search import Search
from sparsebert.runs.text import TextRun
from sparsebert.settings import InnerShare, ShareBelowOne
from sparsebert.text import TokenStore
from sparsebert.training import FitConfig, Objective
from sparsebert.training.gated import Gated
from sparsebert.training.importance import LearnedImportance, TrainedAttention
from sparsebert.training.recorded import Recorded
from sparsebert.training.starting_points import longest_row

_LONGEST = 512  # tokens of a row at which keys a query are counted, if the model reads so many
_SHORT_ROWS = (128, 256)  # on which lines are told apart best, where at most half of them are to stay
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
        refuse_unused(self.kind, preset("default", **self.gate), self.gate)
        given = [*self.gate, *["head_start"] * (self.head_start > 0), *["anchor"] * (self.anchor != "position")]
        if self.kind == "attention" and given:
            raise ConfigError(f"{given[0]} is given, but attention maps need no gate; leave it out")

    def build(self, store: TokenStore, shape: Mapping[str, Any]) -> Objective:
        heads = int(shape["num_attention_heads"])
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
class SearchRun(Search, DistilledRun):
    """A sparse pattern learned on text."""

    anchor: Anchor = "position"
    objective: Literal["distill", "mlm"] | None = None  # None: distill, or mlm for a model that has no weights yet
    sparsities: tuple[InnerShare, ...] | None = None  # targets instead of one: learned for the highest, judged at all
    weights: Literal["frozen", "trained"] | None = None  # beside the gate; None: frozen with distill, trained with mlm

    RATE, WARMUP = 5e-5, 20  # with mlm the weights only follow

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.is_distilled:
            self._check_sparsities()
            if self.assured and self.is_ranked:
                raise ConfigError(
                    f"assured is {self.assured:g}, but the pattern of this search is the beginning of its ranking, in "
                    "which heads compete freely; leave it out, or use diagonal keep or drop"
                )
            return
        if self.weights == "frozen":
            raise ConfigError(
                "weights are to stay frozen with objective mlm; its new head has to learn, so use distill"
            )
        for name in ("teacher", "pooling", "embedding_weight", "full_rows", "sparsities"):
            if getattr(self, name) is not None:
                raise ConfigError(f"{name} is given, but objective mlm has no teacher; leave it out, or use distill")

    def _check_sparsities(self) -> None:
        if self.sparsities is not None and not (self.sparsities and self.is_ranked):
            raise ConfigError(
                f"sparsities is {self.sparsities} with kind {self.kind} and diagonal {self.diagonal}; expected at "
                "least one, of a structured gate whose diagonal is learned: only its units are ranked"
            )

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Self:
        if given.get("keys") is None or given.get("length") is not None:
            return super().read(given)
        longest = _longest(str(given["model"]))
        run = super().read({**given, "length": longest})
        if not run.is_ranked:
            return run
        short = (length for length in _SHORT_ROWS if 2 * float(run.keys or 0) <= length < longest)
        return replace(run, length=next(short, longest))

    @property
    def is_distilled(self) -> bool:
        return (self.objective or ("mlm" if self.model.startswith("scratch:") else "distill")) == "distill"

    @property
    def is_taught(self) -> bool:
        return self.is_distilled

    @property
    def usual_lead(self) -> Lead:
        return FOR_SENTENCES if self.kind == "structured" else FOR_BOTH

    @property
    def is_ranked(self) -> bool:
        """Whether the pattern carries the order of its lines: its file gives any other sparsity, too."""
        return self.is_distilled and self.kind == "structured" and self.diagonal == "learned"

    def aims(self) -> dict[str, Any]:
        return {**super().aims(), "sparsities": self.sparsities}

    def target(self, length: int) -> float | None:
        return super().target(length) if self.sparsities is None else max(self.sparsities)

    def also_at(self) -> tuple[float, ...]:
        return () if self.sparsities is None else self.sparsities

    def build(self, store: TokenStore, shape: Mapping[str, Any]) -> Objective:
        # The gate comes before the weights: a size it cannot have is found out at once.
        gate = self.new_gate(self.length, shape, steps=self.steps, seed=self.seed, anchor=self.anchor)
        first, second = self._levels(store)
        # Learned on rows of any length, a budget of keys holds where it is felt: on long ones.
        in_keys = self.keys is not None and self.is_ranked
        longest = max(self.length, _longest(self.model)) if in_keys else None
        search = self.searching(first, gate, self.seed, second, ranked=self.is_distilled, longest=longest)
        return Recorded(search, {"task": "search"})

    def _levels(self, store: TokenStore) -> tuple[Objective, Objective | None]:
        """What moves the weights and the gate, and what moves the gate in its place where there are two levels."""
        if self.is_distilled:
            first = self.distillation(store, trains_weights=self.weights == "trained")
            return first, first.on(self.text_parts(store, self.seed + 1)) if self.levels == 2 else None
        trained = self.pretraining(store)
        batches = self.batches(store, self.seed + 1)
        return trained, self.on_batches(store, trained.model, batches) if self.levels == 2 else None

    def settings(self, store: TokenStore, objective: Objective) -> dict[str, Any]:
        # Searches had a head start, of 0, in earlier versions: those still go on. They all were of MLM.
        learned = {"objective": "distill" if self.is_distilled else None}
        return {"command": "search", **super().settings(store, objective), "head_start": 0.0, **learned}


def _longest(model: str) -> int:
    """The row at which keys a query are counted."""
    return min(longest_row(model), _LONGEST)
