"""transformers' BERT and a pattern: classes, loading, and sparsify() for other encoders.

sources -> loading -> bert (classes) -> plan (what the layers share) -> interface, padding -> attend()
"""

from transformers import (
    AttentionInterface,
    AttentionMaskInterface,
    AutoConfig,
    AutoModel,
    AutoModelForMaskedLM,
    AutoModelForMultipleChoice,
    AutoModelForPreTraining,
    AutoModelForQuestionAnswering,
    AutoModelForSequenceClassification,
)

from sparsebert.model.attachment import attach, detach, running
from sparsebert.model.bert import (
    SparseBertForMaskedLM,
    SparseBertForMultipleChoice,
    SparseBertForPreTraining,
    SparseBertForQuestionAnswering,
    SparseBertForSequenceClassification,
    SparseBertModel,
)
from sparsebert.model.config import SparseBertConfig
from sparsebert.model.conversion import sparsify, unsparsify
from sparsebert.model.interface import sparse_attention
from sparsebert.model.loading import Head, load_model
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
    "SparseBertModel",
    "attach",
    "detach",
    "extend_positions",
    "load_model",
    "quantize",
    "running",
    "sparsify",
    "to_bfloat16",
    "unsparsify",
]

# Registered together: attention whose name has no padding function is handed no padding at all, silently.
AttentionInterface.register(IMPLEMENTATION, sparse_attention)
AttentionMaskInterface.register(IMPLEMENTATION, padding_as_lengths)

AutoConfig.register("sparsebert", SparseBertConfig, exist_ok=True)
for auto, sparse in (
    (AutoModel, SparseBertModel),
    (AutoModelForPreTraining, SparseBertForPreTraining),
    (AutoModelForMaskedLM, SparseBertForMaskedLM),
    (AutoModelForSequenceClassification, SparseBertForSequenceClassification),
    (AutoModelForMultipleChoice, SparseBertForMultipleChoice),
    (AutoModelForQuestionAnswering, SparseBertForQuestionAnswering),
):
    auto.register(SparseBertConfig, sparse, exist_ok=True)
