"""A model to pre-train on a corpus: any source, checked against the corpus's vocabulary and the length of its rows."""

import logging
from typing import Any

from sparsebert.errors import ConfigError
from sparsebert.memory import require_memory
from sparsebert.model import extend_positions, load_model
from sparsebert.model.families import class_for
from sparsebert.model.folder_checks import folder_config
from sparsebert.model.loading import read_config
from sparsebert.model.positions import positions_by_config, positions_of
from sparsebert.model.saved_pattern import read_pattern
from sparsebert.model.sources import SCRATCH, model_folder, scratch_config
from sparsebert.model.sparse import Sparse, dense_class
from sparsebert.patterns import Pattern
from sparsebert.text import TokenStore, load_tokenizer, source_of, vocabulary_hash
from sparsebert.training.config import FitConfig
from sparsebert.training.launch import num_ranks

logger = logging.getLogger(__name__)

_SHAPE = ("hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size", "max_position_embeddings")
_SCRATCH_POSITIONS = 512  # of a model from scratch, where nobody asks for more
_VALUES_A_LAYER = 8  # hidden states, at the very least, that a layer keeps of every token for the backward pass


def shape_of(model: str) -> dict[str, Any]:
    """Width, layers, heads ... as in a BERT configuration whatever the family, without the weights."""
    if not model.startswith("scratch:"):
        folder = model_folder(source_of(model))
        config = read_config(str(folder))
        return folder_config(folder) | {name: getattr(config, name) for name in _SHAPE if hasattr(config, name)}
    scratch_config(model, vocab_size=1)  # refuses a size that there is none of
    return SCRATCH[model.removeprefix("scratch:")]


def saved_pattern(model: str) -> Pattern | None:
    """The pattern that a model has of its own, without its weights; None: it is dense."""
    if model.startswith("scratch:"):
        return None
    folder = str(model_folder(source_of(model)))
    fields = getattr(read_config(folder), "pattern", None)
    return None if fields is None else read_pattern(folder, fields, {})


def longest_row(model: str) -> int:
    """Tokens that a model takes by itself, without its weights."""
    if model.startswith("scratch:"):
        return _SCRATCH_POSITIONS
    config = read_config(str(model_folder(source_of(model))))
    return positions_by_config(dense_class(class_for("none", config), Sparse), config)


def check_batch(shape: dict[str, Any], config: FitConfig, batch_size: int, length: int) -> None:
    """Refuse batches that the loop cannot cut, or that cannot be trained on in this machine's memory."""
    parts = config.for_ranks(num_ranks()).micro_batches
    if batch_size % parts:
        raise ConfigError(
            f"a batch of {batch_size} rows cannot be cut into {parts} micro-batches; choose a multiple of {parts} rows"
        )
    rows = batch_size // parts
    width, layers = int(shape["hidden_size"]), int(shape["num_hidden_layers"])
    values = length * width * (1 + rows * layers * _VALUES_A_LAYER)
    what = f"a step of {rows} rows of {length} tokens"
    require_memory(4.0 * values, what, "choose a smaller length or batch_size, or more micro_batches")


def require_own_vocabulary(model: str, store: TokenStore) -> None:
    """Refuse a corpus of another vocabulary than the model's; a model from scratch takes any."""
    if not model.startswith("scratch:"):
        store.require_vocabulary(vocabulary_hash(load_tokenizer(model)), model)


def load_for_corpus(
    model: str, store: TokenStore, length: int, *, seed: int, dropout: float | None = None, **config_changes: Any
) -> Any:
    """A sparse model with its head for words that reads the corpus's ids in rows of `length` tokens.

    scratch:* takes the corpus's vocabulary; any other model must have been what the corpus was prepared for.
    dropout: of hidden states and attention; None leaves the model's own.
    """
    if model.startswith("scratch:"):
        changes = {"max_position_embeddings": max(length, _SCRATCH_POSITIONS), **config_changes}
        return load_model(model, "pretraining", vocab_size=store.vocab_size, seed=seed, dropout=dropout, **changes)
    require_own_vocabulary(model, store)
    loaded = load_model(source_of(model), "pretraining", seed=seed, dropout=dropout, **config_changes)
    positions = positions_of(loaded)
    if length > positions:
        logger.info("positions extended from %d to %d", positions, length)
        extend_positions(loaded, length)
    return loaded
