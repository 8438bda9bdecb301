"""What runs on text share: a model, a corpus, sizes, and the pre-training objective they make."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar

from sparsebert.batches import PretrainingBatch, PretrainingBatches
from sparsebert.errors import ConfigError
from sparsebert.files import sha256_of_file
from sparsebert.runs.run import Prepared, RunSettings
from sparsebert.settings import Count, NotNegative, ShareBelowOne
from sparsebert.text import TokenStore
from sparsebert.training import FitConfig, Objective
from sparsebert.training.fingerprint import fingerprint
from sparsebert.training.pretraining import PretrainingObjective, corpus_parts
from sparsebert.training.starting_points import check_batch, load_for_corpus, shape_of
from sparsebert.training.text_objective import BatchParts


@dataclass(frozen=True, kw_only=True)
class TextSizes:
    """Sizes of training on text; a study chooses them for all of its runs at once."""

    length: Count = 128  # tokens in a row
    batch_size: Count = 32  # rows a step, over all ranks
    weight_decay: NotNegative = 0.01  # of matrices
    dropout: ShareBelowOne | None = None  # None: as in the model's own configuration
    num_held_out: Count = 8  # held-out batches of each evaluation


@dataclass(frozen=True, kw_only=True)
class TextRun(TextSizes, RunSettings):
    """A model trained on a corpus."""

    model: str
    steps: Count  # optimiser steps
    corpus: Path | None = None  # a folder of tokens
    learning_rate: NotNegative | None = None  # of the weights, at its peak; None: what suits the kind of run
    seed: int = 0
    held_out_seed: int | None = None  # of the held-out batches; None: the run's own
    shape: dict[str, Any] | None = None  # changes to the configuration of a model from scratch

    UNNAMED = frozenset({"shape"})
    RATE: ClassVar[float] = 1e-4  # of the weights, where none is given
    WARMUP: ClassVar[int] = 10  # the first of so many parts of the steps
    APART: ClassVar[frozenset[str]] = frozenset({"corpus", "fit", "seed"})  # known to run.json in another way

    def __post_init__(self) -> None:
        super().__post_init__()
        self.fit_config()

    def fit_config(self) -> FitConfig:
        # Two micro-batches: the run on one process and the run on two ranks are then the same run.
        parts = 2 if self.batch_size % 2 == 0 else 1
        chosen = {"micro_batches": parts, "warmup_steps": self.steps // self.WARMUP, **self.fit}
        return FitConfig(**{**chosen, "num_steps": self.steps, "seed": self.seed})

    def build(self, store: TokenStore, shape: Mapping[str, Any]) -> Objective:
        """What is trained. shape: of the model, as in its configuration."""
        raise NotImplementedError

    def prepare(self, out: Path) -> Prepared:
        store, shape, config = self.store(), self.model_shape(), self.fit_config()
        check_batch(shape, config, self.batch_size, self.length)
        objective = self.build(store, shape)
        return Prepared(objective, config, self.settings(store, objective))

    def settings(self, store: TokenStore, objective: Objective) -> dict[str, Any]:
        own = {one.name: getattr(self, one.name) for one in fields(self) if one.name not in self.APART}
        return {
            **own,
            "corpus_sha256": sha256_of_file(store.path / "manifest.json"),
            "weights_sha256": fingerprint(objective.model),
            "where": {"corpus": str(self.corpus)},
        }

    def model_shape(self) -> dict[str, Any]:
        return {**shape_of(self.model), **(self.shape or {})}

    def store(self) -> TokenStore:
        if self.corpus is None:
            raise ConfigError("no corpus is given; a run on text needs one, made by `sparsebert prepare`")
        return TokenStore.open(self.corpus)

    def pretraining(self, store: TokenStore) -> PretrainingObjective:
        changes = dict(self.shape or {})
        return self.on_batches(
            store,
            load_for_corpus(self.model, store, self.length, seed=self.seed, dropout=self.dropout, **changes),
            self.batches(store, self.seed),
        )

    def on_batches(self, store: TokenStore, model: Any, batches: BatchParts[PretrainingBatch]) -> PretrainingObjective:
        """The objective of a model on some training batches."""
        held_out_seed = self.seed if self.held_out_seed is None else self.held_out_seed
        return PretrainingObjective(
            model,
            batches,
            PretrainingBatches(store, split="held_out", seed=held_out_seed, **self.batch_sizes()),
            num_held_out=self.num_held_out,
            learning_rate=self.RATE if self.learning_rate is None else self.learning_rate,
            weight_decay=self.weight_decay,
            tokenizer=store.tokenizer(),
        )

    def batches(self, store: TokenStore, seed: int) -> BatchParts[PretrainingBatch]:
        return corpus_parts(store, seed=seed, **self.batch_sizes())

    def batch_sizes(self) -> dict[str, Any]:
        return {"batch_size": self.batch_size, "length": self.length}
