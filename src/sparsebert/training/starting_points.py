"""A model to pre-train on a corpus: any source, checked against the corpus's vocabulary and the length of its rows."""

import logging
from typing import Any

from sparsebert.model import extend_positions, load_model
from sparsebert.text import TokenStore, load_tokenizer, vocabulary_hash

logger = logging.getLogger(__name__)


def load_for_corpus(
    model: str, store: TokenStore, length: int, *, seed: int, dropout: float | None = None, **config_changes: Any
) -> Any:
    """A SparseBertForPreTraining that reads the corpus's ids in rows of `length` tokens.

    scratch:* takes the corpus's vocabulary; any other model must have been what the corpus was prepared for.
    dropout: of hidden states and attention; None leaves the model's own.
    """
    if dropout is not None:
        config_changes |= {"hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout}
    if model.startswith("scratch:"):
        changes = {"max_position_embeddings": max(length, 512), **config_changes}
        return load_model(model, "pretraining", vocab_size=store.vocab_size, seed=seed, **changes)
    store.require_vocabulary(vocabulary_hash(load_tokenizer(model)), model)
    loaded = load_model(model, "pretraining", seed=seed, **config_changes)
    if length > loaded.config.max_position_embeddings:
        logger.info("positions extended from %d to %d", loaded.config.max_position_embeddings, length)
        extend_positions(loaded, length)
    return loaded
