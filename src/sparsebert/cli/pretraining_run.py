"""What `sparsebert pretrain` does with its options: resolve them, say what they cost, or train."""

from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparsebert.errors import ConfigError
from sparsebert.settings import Count, Declared, NotNegative, Positive, ShareBelowOne, check, declared

if TYPE_CHECKING:
    from sparsebert.text import TokenStore
    from sparsebert.training import FitConfig
    from sparsebert.training.pretraining import PretrainingObjective
    from sparsebert.training.recipes import Recipe


@dataclass(frozen=True)
class PretrainingRun:
    """Everything about a pre-training run that its options say."""

    model: str
    num_steps: Count  # optimiser steps
    corpus: Path | None = None
    out: Path | None = None
    pattern: str | None = None
    length: Count = 128  # tokens in a row
    batch_size: Count = 32  # rows a step, over all ranks
    learning_rate: Positive = 1e-4  # at its peak
    weight_decay: NotNegative = 0.01  # of matrices
    dropout: ShareBelowOne | None = None  # None: as in the model's own configuration
    whole_words: bool = False  # corrupt all pieces of a word or none
    num_held_out: Count = 8  # held-out batches of each evaluation
    seed: int = 0
    vocab_size: Count | None = None  # for the cost of a model from scratch without a corpus at hand
    fit: dict[str, Any] = field(default_factory=dict)  # what is left for FitConfig
    pattern_arguments: dict[str, Any] = field(default_factory=dict)  # what is left for the pattern's builder

    def __post_init__(self) -> None:
        check(self)
        self.fit_config()
        if self.pattern is None and self.pattern_arguments:
            raise ConfigError(f"pattern.{next(iter(self.pattern_arguments))} was given without --pattern; name one")

    def fit_config(self) -> "FitConfig":
        from sparsebert.training.config import FitConfig

        # Two micro-batches: the run on one process and the run on two ranks are then the same run.
        defaults = {"micro_batches": 2 if self.batch_size % 2 == 0 else 1, "warmup_steps": self.num_steps // 10}
        return FitConfig(**{**defaults, **self.fit, "num_steps": self.num_steps, "seed": self.seed})


_OWN = {one.name for one in fields(PretrainingRun)} - {"fit", "pattern_arguments"}
_PATTERN = "pattern."


def resolve(given: dict[str, Any], recipe_name: str | None, others: dict[str, Any]) -> PretrainingRun:
    """Options first, then --set, then the recipe, then the defaults; unknown settings are refused."""
    values: dict[str, Any] = {"fit": {}, "pattern_arguments": {}}
    recipe = _recipe(recipe_name, given | others)
    for name, value in {**recipe, **others, **given}.items():
        if name in _OWN:
            values[name] = value
        elif name.startswith(_PATTERN):
            values["pattern_arguments"][name.removeprefix(_PATTERN)] = value
        else:
            values["fit"][name] = value
    for name in ("model", "num_steps"):
        if name not in values:
            option = "--steps" if name == "num_steps" else f"--{name}"
            raise ConfigError(f"{option} is missing; give it, or a --recipe that has it")
    return PretrainingRun(**values)


def run_settings(pattern: str | None) -> dict[str, Declared]:
    """Every setting of a run, of the loop and, as pattern.NAME, of the pattern's builder."""
    from sparsebert.cli.options import builder_arguments
    from sparsebert.training.config import FitConfig

    own = {name: one for name, one in declared(PretrainingRun).items() if name in _OWN}
    return {**declared(FitConfig), **own, **(builder_arguments(pattern, _PATTERN) if pattern else {})}


def _recipe(name: str | None, given: dict[str, Any]) -> dict[str, Any]:
    if name is None:
        return {}
    from sparsebert.text import TokenStore
    from sparsebert.training.recipes import load_recipe

    recipe: Recipe = load_recipe(name)
    sizes = {key: given[key] for key in ("length", "batch_size") if key in given}
    corpus = given.get("corpus")
    tokens = recipe.epoch_tokens if corpus is None else TokenStore.open(corpus).num_tokens
    found = asdict(recipe) | {"num_steps": replace(recipe, **sizes).steps_for(tokens)}
    unused = {"epochs", "epoch_tokens"}
    if recipe.warmup_steps > given.get("num_steps", found["num_steps"]):
        unused.add("warmup_steps")  # it was meant for a longer run; a tenth of this one is taken instead
    return {key: value for key, value in found.items() if key not in unused}


def describe(run: PretrainingRun, device_flops: float | None, devices: int) -> list[str]:
    """The run in words, and its cost on given hardware."""
    from sparsebert.training.recipes import cost_of, measured_flops
    from sparsebert.training.starting_points import shape_of

    shape = shape_of(run.model)
    vocab_size = shape.get("vocab_size", run.vocab_size) or _store(run).vocab_size
    per_device = measured_flops() if device_flops is None else device_flops
    cost = cost_of(
        shape,
        vocab_size=vocab_size,
        length=run.length,
        batch_size=run.batch_size,
        num_steps=run.num_steps,
        flops_per_second=per_device * devices,
        density=1.0 if run.pattern is None else 1.0 - _pattern(run, shape["num_attention_heads"]).sparsity,
    )
    told = "measured here with matrix products, an upper bound" if device_flops is None else "as given"
    config = run.fit_config()
    return [
        f"{run.model}: {shape['num_hidden_layers']} layers, width {shape['hidden_size']}, "
        f"{vocab_size:,} words, length {run.length}, attention density {cost.density:.3f}",
        f"batch {run.batch_size}, {run.num_steps:,} steps, {cost.tokens:.3g} tokens; AdamW {run.learning_rate:g}, "
        f"{config.warmup_steps:,} warm-up steps, decay {run.weight_decay:g}, "
        f"dropout {'as in the model' if run.dropout is None else run.dropout}",
        f"{cost.flops:.3g} operations; at {per_device:.3g} a second on each of {devices} (rate {told}): "
        f"{cost.days:,.1f} days",
    ]


def train(run: PretrainingRun) -> dict[str, Any] | None:
    """Train, or resume; the fields of result.json, on rank 0 alone."""
    from sparsebert.cli.options import require_folder, say_what_happens
    from sparsebert.training import fit, for_this_terminal, is_main

    if run.out is None:
        raise ConfigError("--out is missing; name the run folder to write, or to resume")
    require_folder(run.out)
    say_what_happens()
    store = _store(run)
    objective = _objective(run, store)
    progress = for_this_terminal("pretrain") if is_main() else None
    result = fit(objective, run.fit_config(), run.out, settings=_settings(run, store, objective), progress=progress)
    return dict(result.fields) if is_main() else None


def _store(run: PretrainingRun) -> "TokenStore":
    from sparsebert.text import TokenStore

    if run.corpus is None:
        raise ConfigError("--corpus is missing; make one with: sparsebert prepare FILE --model MODEL --out CORPUS")
    return TokenStore.open(run.corpus)


def _pattern(run: PretrainingRun, heads: int) -> Any:
    from sparsebert.cli.options import find_pattern

    return find_pattern(str(run.pattern), run.length, heads, **run.pattern_arguments)


def _objective(run: PretrainingRun, store: "TokenStore") -> "PretrainingObjective":
    from sparsebert.batches import PretrainingBatches
    from sparsebert.training.pretraining import PretrainingObjective, corpus_parts
    from sparsebert.training.starting_points import check_batch, load_for_corpus, shape_of

    # Sizes and the pattern come before the weights: what cannot be is found out at once.
    shape = shape_of(run.model)
    check_batch(shape, run.fit_config(), run.batch_size, run.length)
    pattern = None if run.pattern is None else _pattern(run, int(shape["num_attention_heads"]))
    model = load_for_corpus(run.model, store, run.length, seed=run.seed, dropout=run.dropout)
    if pattern is not None:
        model.set_pattern(pattern)
    sizes: dict[str, Any] = {"batch_size": run.batch_size, "length": run.length, "whole_words": run.whole_words}
    return PretrainingObjective(
        model,
        corpus_parts(store, seed=run.seed, **sizes),
        PretrainingBatches(store, split="held_out", seed=run.seed, **sizes),
        num_held_out=run.num_held_out,
        learning_rate=run.learning_rate,
        weight_decay=run.weight_decay,
        tokenizer=store.tokenizer(),
    )


def _settings(run: PretrainingRun, store: "TokenStore", objective: "PretrainingObjective") -> dict[str, Any]:
    """What run.json holds a resumed run to; `where` may change, as long as what is found there is the same."""
    from sparsebert.files import sha256_of_file
    from sparsebert.training.fingerprint import fingerprint

    pattern = objective.model.pattern
    names = ("model", "length", "batch_size", "learning_rate", "weight_decay", "dropout", "whole_words", "num_held_out")
    return {
        "command": "pretrain",
        **{name: getattr(run, name) for name in names},
        "corpus_sha256": sha256_of_file(store.path / "manifest.json"),
        "weights_sha256": fingerprint(objective.model),
        "pattern_digest": None if pattern is None else pattern.digest,
        "where": {"corpus": str(store.path), "pattern": run.pattern},
    }
