"""Learn a pattern for one task: a gate on the task's own loss, for tasks differ in how much attention they need."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from sparsebert import gates
from sparsebert.errors import ConfigError
from sparsebert.gates import Diagonal, preset
from sparsebert.gates.settings import refuse_unused
from sparsebert.model import attach, detach
from sparsebert.patterns import Anchor, Pattern
from sparsebert.settings import InnerShare, NotNegative, check
from sparsebert.tasks.config import FinetuneConfig
from sparsebert.tasks.finetune import prepare
from sparsebert.training import Result, Watcher, fit


@dataclass(frozen=True)
class TaskGate:
    """The gate of a search on a task; exactly one of sparsity and penalty is given."""

    kind: Literal["structured", "unstructured"] = "structured"
    sparsity: InnerShare | None = None  # target
    penalty: NotNegative = 0.0  # lambda of the paper
    preset: str = "default"
    diagonal: Diagonal = "learned"
    changes: dict[str, Any] = field(default_factory=dict)  # settings that differ from the preset

    def __post_init__(self) -> None:
        check(self)
        preset(self.preset, **self.changes)
        refuse_unused(self.kind, self.changes)
        if (self.sparsity is None) == (self.penalty == 0.0):
            raise ConfigError("a search needs either --sparsity S or --penalty X, one of them")


def search_on_task(
    config: FinetuneConfig,
    gate: TaskGate,
    out: Path,
    *,
    fit_settings: Mapping[str, Any] | None = None,
    progress: Watcher | None = None,
) -> Result:
    """Fine-tune with a gate beside the weights, freeze it, and score the model under its pattern; resumes."""

    def make_gate(model: Any, steps: int) -> tuple[gates.Gate, Any]:
        learned = _gate(gate, config.resolved(), int(model.config.num_attention_heads), steps)
        attach(model, learned, inside=False)
        return learned, lambda folder: _freeze(model, learned, gate.diagonal, folder)

    prepared = prepare(config, out, fit_settings=fit_settings, make_gate=make_gate)
    settings = prepared.settings | {"command": "search", "gate": asdict(gate)}
    return fit(prepared.objective, prepared.config, out, settings=settings, progress=progress)


def _gate(gate: TaskGate, config: FinetuneConfig, heads: int, steps: int) -> gates.Gate:
    cls = gates.Structured if gate.kind == "structured" else gates.Unstructured
    # Inputs of tasks are short: the border follows the true last token unless the paper's reading is asked for.
    anchor: Anchor = "position" if config.anchor == "position" else "token"
    return cls(
        int(config.length or 0),
        heads,
        sparsity=gate.sparsity,
        penalty=gate.penalty,
        steps=steps,
        seed=config.seed,
        anchor=anchor,
        settings=gate.preset,
        **gate.changes,
    )


def _freeze(model: Any, learned: gates.Gate, diagonal: Diagonal, folder: Path) -> Pattern:
    pattern = learned.freeze(learned.sparsity, diagonal=diagonal)
    gates.save(learned, folder / "gate.safetensors")
    pattern.save(folder / "pattern.safetensors")
    detach(model)
    return pattern
