"""transformers' encoders and a pattern: sparse classes of every family, loading, saving, sparsify().

sources -> loading -> families (classes) -> sparse -> plan (what the layers share) -> interface, padding -> attend()
"""

from transformers import AttentionInterface, AttentionMaskInterface

from sparsebert.model.attachment import attach, detach, running
from sparsebert.model.bert import (
    SparseBertForMaskedLM,
    SparseBertForMultipleChoice,
    SparseBertForPreTraining,
    SparseBertForQuestionAnswering,
    SparseBertForSequenceClassification,
    SparseBertForTokenClassification,
    SparseBertModel,
)
from sparsebert.model.config import SparseBertConfig
from sparsebert.model.conversion import sparsify, unsparsify
from sparsebert.model.families import Head, sparse_class
from sparsebert.model.interface import sparse_attention
from sparsebert.model.loading import load_model
from sparsebert.model.padding import padding_as_lengths
from sparsebert.model.plan import IMPLEMENTATION, Plan
from sparsebert.model.positions import extend_positions
from sparsebert.model.quantisation import quantize, to_bfloat16

__all__ = [
    "Head",
    "Plan",
    "SparseBertConfig",
    "SparseBertForMaskedLM",
    "SparseBertForMultipleChoice",
    "SparseBertForPreTraining",
    "SparseBertForQuestionAnswering",
    "SparseBertForSequenceClassification",
    "SparseBertForTokenClassification",
    "SparseBertModel",
    "attach",
    "detach",
    "extend_positions",
    "load_model",
    "quantize",
    "running",
    "sparse_class",
    "sparsify",
    "to_bfloat16",
    "unsparsify",
]

# Registered together: attention whose name has no padding function is handed no padding at all, silently.
AttentionInterface.register(IMPLEMENTATION, sparse_attention)
AttentionMaskInterface.register(IMPLEMENTATION, padding_as_lengths)
