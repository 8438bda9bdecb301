"""Token ids -> tensors: sentence pairs, corruption, collation. Batch k can be made without the batches before it.

sentence places ─> pairs ─> rows ─> plain ─> trimming
                              └───> corruption ─> pretraining
"""

from sparsebert.batches.corruption import max_predictions
from sparsebert.batches.pairs import Pair
from sparsebert.batches.plain import PlainBatches
from sparsebert.batches.pretraining import PretrainingBatch, PretrainingBatches
from sparsebert.batches.rows import TextBatch
from sparsebert.batches.trimming import like_lengths

__all__ = [
    "Pair",
    "PlainBatches",
    "PretrainingBatch",
    "PretrainingBatches",
    "TextBatch",
    "like_lengths",
    "max_predictions",
]
