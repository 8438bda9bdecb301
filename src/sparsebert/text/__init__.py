"""Raw text -> token ids, strictly, in bounded memory, the same bytes every time.

sources ─> blocks ─> documents ─> sentences ─> shards ─> store
           (one process reads)    (workers tokenise)     (memory-mapped, checked at first touch)
"""

from sparsebert.text.prepare import PrepareProgress, prepare_corpus
from sparsebert.text.shards import SPLITS, Shard, Split
from sparsebert.text.store import TokenStore
from sparsebert.text.vocabulary import (
    CONTINUATION,
    SPECIAL_TOKENS,
    SpecialIds,
    load_tokenizer,
    source_of,
    special_ids,
    special_tokens,
    train_tokenizer,
    vocabulary_hash,
)

__all__ = [
    "CONTINUATION",
    "SPECIAL_TOKENS",
    "SPLITS",
    "PrepareProgress",
    "Shard",
    "SpecialIds",
    "Split",
    "TokenStore",
    "load_tokenizer",
    "prepare_corpus",
    "source_of",
    "special_ids",
    "special_tokens",
    "train_tokenizer",
    "vocabulary_hash",
]
