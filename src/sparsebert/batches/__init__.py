"""Token ids -> tensors: sentence pairs, corruption, collation. Batch k can be made without the batches before it.

sentence places ─> pairs ─> rows ─> plain
                              └───> corruption ─> pretraining
"""

from sparsebert.batches.corruption import max_predictions
from sparsebert.batches.pairs import Pair
from sparsebert.batches.plain import PlainBatches
from sparsebert.batches.pretraining import PretrainingBatch, PretrainingBatches
from sparsebert.batches.rows import TextBatch

__all__ = ["Pair", "PlainBatches", "PretrainingBatch", "PretrainingBatches", "TextBatch", "max_predictions"]
