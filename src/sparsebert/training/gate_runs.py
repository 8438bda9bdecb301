"""Whole runs that learn who needs whom: what their settings are, and one call from settings to a run folder."""

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, get_args

from sparsebert import gates
from sparsebert.batches import PretrainingBatches
from sparsebert.errors import ConfigError, FileError
from sparsebert.files import read_bytes, sha256_of_file
from sparsebert.gates import Diagonal, Settings
from sparsebert.patterns import Anchor, Pattern
from sparsebert.patterns.figures import head_grid, save_figure
from sparsebert.training.config import FitConfig, fit_fields
from sparsebert.training.figures import importance_figure, sparsity_figure
from sparsebert.training.fingerprint import fingerprint
from sparsebert.training.fit import Result, fit
from sparsebert.training.importance import AttentionObjective, ImportanceObjective, load_importance
from sparsebert.training.launch import is_main
from sparsebert.training.pretraining import PretrainingObjective, corpus_parts
from sparsebert.training.progress import Watcher
from sparsebert.training.search import SearchObjective
from sparsebert.training.starting_points import load_for_corpus

Kind = Literal["soft", "attention", "structured", "unstructured"]
# Of the weights: the importance analysis trains them on; a search only lets them follow.
_WEIGHTS_RATE = {"soft": 3e-4, "attention": 3e-4, "structured": 5e-5, "unstructured": 5e-5}


@dataclass(frozen=True)
class GateRun:
    """Everything about an importance analysis or a search that is chosen."""

    kind: Kind
    model: str
    corpus: Path
    steps: int  # optimiser steps
    length: int = 128  # tokens in a row
    batch_size: int = 32  # rows a step, over all ranks
    learning_rate: float | None = None  # of the weights; None: 3e-4 for importance, 5e-5 for a search
    weight_decay: float = 0.01
    dropout: float | None = None  # None: as in the model's own configuration
    num_held_out: int = 8  # held-out batches of each evaluation
    seed: int = 0
    penalty: float = 0.0  # lambda of the paper; not with a sparsity
    sparsity: float | None = None  # target of the search
    preset: str = "default"
    levels: int = 1  # 2: alpha on batches of its own (first-order DARTS)
    diagonal: Diagonal = "learned"
    anchor: Anchor = "position"
    head_start: float = 0.0  # importance: share of the steps in which only the weights learn
    gate: dict[str, Any] = field(default_factory=dict)  # settings that differ from the preset
    fit: dict[str, Any] = field(default_factory=dict)  # settings that differ from the loop's defaults

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise ConfigError(f"kind is {self.kind!r}; expected one of {', '.join(get_args(Kind))}")
        if self.diagonal not in get_args(Diagonal):
            raise ConfigError(f"diagonal is {self.diagonal!r}; expected one of {', '.join(get_args(Diagonal))}")
        if self.levels not in (1, 2):
            raise ConfigError(f"levels is {self.levels}; expected 1 or 2")
        if not 0.0 <= self.head_start < 1.0:
            raise ConfigError(f"head_start is {self.head_start}; expected a share of the steps, from 0 to below 1")
        is_search = self.kind in ("structured", "unstructured")
        if is_search and self.sparsity is None and not self.penalty:
            raise ConfigError("a search needs --sparsity S or --penalty X; without either nothing would be dropped")
        if is_search and self.sparsity is not None and self.penalty:
            raise ConfigError("both --sparsity and --penalty are given; a target sets the penalty, so leave one out")

    def fit_config(self) -> FitConfig:
        # Two micro-batches: the run on one process and the run on two ranks are then the same run.
        defaults = {"micro_batches": 2 if self.batch_size % 2 == 0 else 1, "warmup_steps": self.steps // 20}
        return FitConfig(**{**defaults, **self.fit, "num_steps": self.steps, "seed": self.seed})


def resolve(given: dict[str, Any], others: dict[str, Any]) -> GateRun:
    """Options as given, and others that may be settings of the run, of its gate or of the loop."""
    own = {one.name for one in fields(GateRun)} - {"gate", "fit"}
    of_gate = {one.name for one in fields(Settings)}
    values: dict[str, Any] = {"gate": {}, "fit": {}}
    for name, value in {**others, **given}.items():
        if name in own:
            values[name] = value
        elif name in of_gate:
            values["gate"][name] = value
        elif name in fit_fields():
            values["fit"][name] = value
        else:
            known = ", ".join(sorted((own | of_gate | fit_fields()) - {"corpus", "kind"}))
            raise ConfigError(f"there is no setting {name!r}; expected one of {known}")
    return GateRun(**values)


def run_gate(run: GateRun, out: Path, progress: Watcher | None = None) -> Result:
    """Train, or resume, and draw what was learned into the run folder."""
    store = _store(run)
    objective = _objective(run, store)
    weights = fingerprint(objective.pretraining.model)
    settings = {
        "command": "importance" if run.kind in ("soft", "attention") else "search",
        **{one.name: getattr(run, one.name) for one in fields(GateRun) if one.name not in ("corpus", "fit", "seed")},
        "corpus_sha256": sha256_of_file(store.path / "manifest.json"),
        "weights_sha256": weights,
        "where": {"corpus": str(run.corpus)},
    }
    result = fit(objective, run.fit_config(), out, settings=settings, progress=progress)
    # The figures come after result.json: a kill in between must not leave a finished run without them.
    if is_main() and not all((out / name).exists() for name in figures_of(run)):
        draw(run, out)
    return result


def figures_of(run: GateRun) -> tuple[str, ...]:
    return ("importance.png",) if run.kind in ("soft", "attention") else ("pattern.png", "sparsity.png")


def draw(run: GateRun, out: Path) -> None:
    """The figures of a finished run."""
    if run.kind in ("soft", "attention"):
        words = "learned importance P" if run.kind == "soft" else "trained attention maps"
        title = f"{words}, mean over heads after normalisation"
        save_figure(importance_figure(load_importance(out), title), out / "importance.png")
        return
    save_figure(head_grid(Pattern.load(out / "pattern.safetensors")), out / "pattern.png")
    save_figure(sparsity_figure(read_metrics(out), run.sparsity), out / "sparsity.png")


def read_metrics(out: Path) -> list[dict[str, Any]]:
    """The lines of metrics.jsonl."""
    import json

    path = out / "metrics.jsonl"
    try:
        return [json.loads(line) for line in read_bytes(path).splitlines()]
    except (ValueError, RecursionError) as error:
        raise FileError(f"{path} is damaged ({error}); restore it from a copy") from error


def _store(run: GateRun) -> Any:
    from sparsebert.text import TokenStore

    return TokenStore.open(run.corpus)


def _objective(run: GateRun, store: Any) -> Any:
    pretraining = _pretraining(run, store)
    if run.kind == "attention":
        return AttentionObjective(pretraining, seed=run.seed)
    heads = pretraining.model.config.num_attention_heads
    common: dict[str, Any] = {"steps": run.steps, "seed": run.seed, "anchor": run.anchor, **run.gate}
    if run.kind == "soft":
        gate_from = int(run.head_start * run.steps)
        soft = gates.Soft(run.length, heads, **common)
        return ImportanceObjective(pretraining, soft, seed=run.seed, gate_from=gate_from)
    cls = gates.Structured if run.kind == "structured" else gates.Unstructured
    gate = cls(run.length, heads, sparsity=run.sparsity, penalty=run.penalty, settings=run.preset, **common)
    return SearchObjective(
        pretraining,
        gate,
        seed=run.seed,
        gate_batches=_batches(run, store, run.seed + 1) if run.levels == 2 else None,
        diagonal=run.diagonal,
    )


def _pretraining(run: GateRun, store: Any) -> PretrainingObjective:
    rate = _WEIGHTS_RATE[run.kind] if run.learning_rate is None else run.learning_rate
    return PretrainingObjective(
        load_for_corpus(run.model, store, run.length, seed=run.seed, dropout=run.dropout),
        _batches(run, store, run.seed),
        PretrainingBatches(store, split="held_out", seed=run.seed, batch_size=run.batch_size, length=run.length),
        num_held_out=run.num_held_out,
        learning_rate=rate,
        weight_decay=run.weight_decay,
        tokenizer=store.tokenizer(),
    )


def _batches(run: GateRun, store: Any, seed: int) -> Any:
    return corpus_parts(store, batch_size=run.batch_size, length=run.length, seed=seed)
