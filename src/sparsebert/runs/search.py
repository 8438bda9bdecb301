"""What searches share, on text or on a task: the gate's settings, the gate, and how it is learned and drawn."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from sparsebert import gates
from sparsebert.errors import ConfigError, FileError
from sparsebert.files import read_bytes
from sparsebert.gates import Diagonal, Gate, Settings, preset
from sparsebert.gates.settings import refuse_unused
from sparsebert.patterns import Anchor, Pattern
from sparsebert.patterns.figures import head_grid, save_figure
from sparsebert.runs.run import RunSettings
from sparsebert.settings import InnerShare, NotNegative, Range, Share
from sparsebert.training import FitConfig, Objective
from sparsebert.training.figures import sparsity_figure
from sparsebert.training.gated import Frozen, Gated


@dataclass(frozen=True, kw_only=True)
class Search(RunSettings):
    """A gate that is learned beside the weights and frozen at the end; either a sparsity or a penalty is given."""

    kind: Literal["structured", "unstructured"] = "structured"  # lines |i - j| a head, or single entries
    sparsity: InnerShare | None = None  # target
    keys: Annotated[float, Range(1)] | None = None  # target instead: the mean number of keys a query, border included
    penalty: NotNegative = 0.0  # lambda of the paper
    preset: str = "default"
    levels: Literal[1, 2] = 1  # 2: alpha on batches of its own (first-order DARTS)
    diagonal: Diagonal = "learned"  # when the gate is frozen
    # When it is frozen to a sparsity: what every head keeps of an even share; None: half, by distillation nothing.
    assured: Share | None = None
    gate: dict[str, Any] = field(default_factory=dict)  # settings that differ from the preset
    layers: Literal["own", "shared"] | None = None  # a pattern a layer, or one for all; None: what suits the loss

    PARTS: ClassVar[Mapping[str, type]] = {"gate": Settings, "fit": FitConfig}
    FIGURES = ("pattern.png", "sparsity.png")

    def __post_init__(self) -> None:
        super().__post_init__()
        refuse_unused(self.kind, preset(self.gate_preset, **self.gate), self.gate)
        aims = [name for name, value in self.aims().items() if value is not None]
        if not aims:
            raise ConfigError("neither a sparsity nor a penalty is given; without either nothing would be dropped")
        if len(aims) > 1:
            raise ConfigError(
                f"both {aims[0]} and {aims[1]} are given; each sets how much is dropped, so leave one out"
            )

        if self.assured is not None and self.penalty:
            raise ConfigError(
                f"assured is {self.assured:g} with a penalty, under which heads share no budget; leave it out, or give "
                "a sparsity in place of the penalty"
            )

    def aims(self) -> dict[str, Any]:
        """Whatever can say how much is dropped, in words; one of them is given."""
        return {"a sparsity": self.sparsity, "keys": self.keys, "a penalty": self.penalty or None}

    def target(self, length: int) -> float | None:
        """The sparsity that is aimed at; None: wherever the penalty leads."""
        if self.keys is None:
            return self.sparsity
        if self.keys >= length:
            raise ConfigError(f"keys is {self.keys:g} but rows have {length} tokens; choose fewer keys, or longer rows")
        return 1.0 - self.keys / length

    def new_gate(self, length: int, shape: Mapping[str, Any], *, steps: int, seed: int, anchor: Anchor) -> Gate:
        """shape: of the model, as in its configuration."""
        heads, own = int(shape["num_attention_heads"]), (self.layers or self.usual_layers(shape)) == "own"
        aim: dict[str, Any] = {"sparsity": self.target(length), "penalty": self.penalty, "settings": self.gate_preset}
        sizes = {"steps": steps, "seed": seed, "layers": int(shape["num_hidden_layers"]) if own else 1}
        return gates.KINDS[self.kind](length, heads, anchor=anchor, **sizes, **aim, **self.gate)

    @property
    def is_taught(self) -> bool:
        """Whether a dense model leads the gate."""
        return False

    @property
    def gate_preset(self) -> str:
        """The preset that this search means by its name of it."""
        return "distilled" if self.is_taught and self.preset == "default" else self.preset

    def usual_layers(self, shape: Mapping[str, Any]) -> Literal["own", "shared"]:
        """Whether layers have patterns of their own where no one says so."""
        # ALBERT's layers are one and the same module.
        return "own" if self.is_taught and shape.get("model_type") != "albert" else "shared"

    def searching(
        self,
        inner: Objective,
        gate: Gate,
        seed: int,
        second: Objective | None,
        *,
        ranked: bool = False,
        longest: int | None = None,
    ) -> Frozen:
        """ranked: the pattern carries the order of its units; heads then compete freely, unless they are assured.

        longest: the length at which a ranked pattern keeps as many keys a query as the gate does at its own.
        """
        assured = (0.0 if ranked else 0.5) if self.assured is None else self.assured
        gated = Gated(inner, gate, seed=seed, second=second)
        ranked = ranked and self.diagonal == "learned"
        return Frozen(
            gated, diagonal=self.diagonal, assured=assured, ranked=ranked, longest=longest, also_at=self.also_at()
        )

    def also_at(self) -> tuple[float, ...]:
        """Sparsities beside the target that the pattern is judged at."""
        return ()

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
