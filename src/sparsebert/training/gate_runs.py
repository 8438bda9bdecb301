"""Whole runs that learn who needs whom: what their settings are, and one call from settings to a run folder."""

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from sparsebert import gates
from sparsebert.batches import PretrainingBatches
from sparsebert.errors import ConfigError, FileError
from sparsebert.files import read_bytes, sha256_of_file
from sparsebert.gates import Diagonal, Settings, preset
from sparsebert.gates.settings import refuse_unused
from sparsebert.importance.figures import importance_figure
from sparsebert.importance.saved import load_importance
from sparsebert.patterns import Anchor, Pattern
from sparsebert.patterns.figures import head_grid, save_figure
from sparsebert.settings import Count, Declared, InnerShare, NotNegative, ShareBelowOne, check, declared, refuse_unknown
from sparsebert.training.config import FitConfig
from sparsebert.training.figures import sparsity_figure
from sparsebert.training.fingerprint import fingerprint
from sparsebert.training.fit import Result, fit
from sparsebert.training.importance import AttentionObjective, ImportanceObjective
from sparsebert.training.launch import is_main
from sparsebert.training.pretraining import PretrainingObjective, corpus_parts
from sparsebert.training.progress import Watcher
from sparsebert.training.search import SearchObjective
from sparsebert.training.starting_points import check_batch, load_for_corpus, shape_of

Kind = Literal["soft", "attention", "structured", "unstructured"]
# Of the weights: the importance analysis trains them on; a search only lets them follow.
_WEIGHTS_RATE = {"soft": 3e-4, "attention": 3e-4, "structured": 5e-5, "unstructured": 5e-5}
# Settings that a kind of run has no use for: given all the same they are a misunderstanding.
_OF_SEARCH = ("penalty", "sparsity", "preset", "levels", "diagonal")
_UNUSED_BY: dict[str, tuple[str, ...]] = {
    "soft": _OF_SEARCH,
    "attention": (*_OF_SEARCH, "anchor", "head_start"),
    "structured": ("head_start",),
    "unstructured": ("head_start",),
}


@dataclass(frozen=True)
class GateRun:
    """Everything about an importance analysis or a search that is chosen."""

    kind: Kind
    model: str
    corpus: Path
    steps: Count  # optimiser steps
    length: Count = 128  # tokens in a row
    batch_size: Count = 32  # rows a step, over all ranks
    learning_rate: NotNegative | None = None  # of the weights; None: 3e-4 for importance, 5e-5 for a search
    weight_decay: NotNegative = 0.01
    dropout: ShareBelowOne | None = None  # None: as in the model's own configuration
    num_held_out: Count = 8  # held-out batches of each evaluation
    seed: int = 0
    penalty: NotNegative = 0.0  # lambda of the paper; not with a sparsity
    sparsity: InnerShare | None = None  # target of the search
    preset: str = "default"
    levels: Literal[1, 2] = 1  # 2: alpha on batches of its own (first-order DARTS)
    diagonal: Diagonal = "learned"
    anchor: Anchor = "position"
    head_start: ShareBelowOne = 0.0  # importance: share of the steps in which only the weights learn
    gate: dict[str, Any] = field(default_factory=dict)  # settings that differ from the preset
    fit: dict[str, Any] = field(default_factory=dict)  # settings that differ from the loop's defaults

    def __post_init__(self) -> None:
        check(self)
        defaults = {one.name: one.default for one in fields(self)}
        for name in _UNUSED_BY[self.kind]:
            if getattr(self, name) != defaults[name]:
                raise ConfigError(
                    f"{name} is {getattr(self, name)}, which a run of kind {self.kind} does not use; leave it out"
                )
        if self.kind == "attention" and self.gate:
            raise ConfigError(f"{next(iter(self.gate))} is given, but attention maps need no gate; leave it out")
        refuse_unused(self.kind, self.gate)
        if self.is_search and self.sparsity is None and not self.penalty:
            raise ConfigError("a search needs --sparsity S or --penalty X; without either nothing would be dropped")
        if self.is_search and self.sparsity is not None and self.penalty:
            raise ConfigError("both --sparsity and --penalty are given; a target sets the penalty, so leave one out")
        preset(self.preset, **self.gate)
        self.fit_config()

    @property
    def is_search(self) -> bool:
        return self.kind in ("structured", "unstructured")

    def fit_config(self) -> FitConfig:
        # Two micro-batches: the run on one process and the run on two ranks are then the same run.
        defaults = {"micro_batches": 2 if self.batch_size % 2 == 0 else 1, "warmup_steps": self.steps // 20}
        return FitConfig(**{**defaults, **self.fit, "num_steps": self.steps, "seed": self.seed})


def resolve(given: dict[str, Any], others: dict[str, Any]) -> GateRun:
    """Options as given, and others that may be settings of the run, of its gate or of the loop."""
    values: dict[str, Any] = {"gate": {}, "fit": {}}
    for name, value in {**others, **given}.items():
        refuse_unknown(name, run_settings())
        if name in declared(GateRun):
            values[name] = value
        else:
            values["gate" if name in declared(Settings) else "fit"][name] = value
    return GateRun(**values)


def run_settings() -> dict[str, Declared]:
    """Every setting of a run, of its gate and of the loop."""
    own = {name: one for name, one in declared(GateRun).items() if name not in ("gate", "fit")}
    return {**declared(FitConfig), **declared(Settings), **own}


def run_gate(run: GateRun, out: Path, progress: Watcher | None = None) -> Result:
    """Train, or resume, and draw what was learned into the run folder."""
    store = _store(run)
    objective = _objective(run, store)
    weights = fingerprint(objective.pretraining.model)
    settings = {
        "command": "search" if run.is_search else "importance",
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
    return ("pattern.png", "sparsity.png") if run.is_search else ("importance.png",)


def draw(run: GateRun, out: Path) -> None:
    """The figures of a finished run."""
    if not run.is_search:
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
    shape = shape_of(run.model)
    check_batch(shape, run.fit_config(), run.batch_size, run.length)
    # The gate comes before the weights: a size it cannot have is found out at once.
    gate = _gate(run, int(shape["num_attention_heads"]))
    pretraining = _pretraining(run, store)
    if gate is None:
        return AttentionObjective(pretraining, seed=run.seed)
    if isinstance(gate, gates.Soft):
        return ImportanceObjective(pretraining, gate, seed=run.seed, gate_from=int(run.head_start * run.steps))
    return SearchObjective(
        pretraining,
        gate,
        seed=run.seed,
        gate_batches=_batches(run, store, run.seed + 1) if run.levels == 2 else None,
        diagonal=run.diagonal,
    )


def _gate(run: GateRun, heads: int) -> gates.Gate | None:
    """What is learned; None: attention maps need no gate."""
    common: dict[str, Any] = {"steps": run.steps, "seed": run.seed, "anchor": run.anchor, **run.gate}
    if run.kind == "attention":
        return None
    if run.kind == "soft":
        return gates.Soft(run.length, heads, **common)
    cls = gates.Structured if run.kind == "structured" else gates.Unstructured
    return cls(run.length, heads, sparsity=run.sparsity, penalty=run.penalty, settings=run.preset, **common)


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
