"""Texts -> embeddings: one a text, or one for every few tokens of it, from a single pass over the whole.

texts -> tokens (cut where the model ends) -> batches, packed without padding -> states -> pooled, normalised -> file
"""

from sparsebert.embeddings.batching import BATCH_TOKENS
from sparsebert.embeddings.chunks import Chunk
from sparsebert.embeddings.encoder import Encoder
from sparsebert.embeddings.encoding import Encoded, encode
from sparsebert.embeddings.output import check_out, write_embeddings
from sparsebert.embeddings.similarity import (
    JudgedPair,
    SimilaritySets,
    mean_similarity,
    read_similarity,
    scores_of_embeddings,
    similarity_files,
    similarity_scores,
    texts_of,
)
from sparsebert.embeddings.texts import Texts, read_texts

__all__ = [
    "BATCH_TOKENS",
    "Chunk",
    "Encoded",
    "Encoder",
    "JudgedPair",
    "SimilaritySets",
    "Texts",
    "check_out",
    "encode",
    "mean_similarity",
    "read_similarity",
    "read_texts",
    "scores_of_embeddings",
    "similarity_files",
    "similarity_scores",
    "texts_of",
    "write_embeddings",
]
