"""Token ids -> tensors: sentence pairs, corruption, collation. Batch k can be made without the batches before it.

sentence places ─> pairs ─> corruption ─> pretraining
"""

from sparsebert.batches.corruption import max_predictions
from sparsebert.batches.pairs import Pair
from sparsebert.batches.pretraining import PretrainingBatch, PretrainingBatches

__all__ = ["Pair", "PretrainingBatch", "PretrainingBatches", "max_predictions"]
