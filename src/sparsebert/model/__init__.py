"""transformers' BERT and a pattern: classes, loading, and sparsify() for other encoders.

sources -> loading -> bert (classes) -> interface (attention and padding functions) -> attend()
"""

from transformers import (
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
from sparsebert.model.conversion import sparsify
from sparsebert.model.interface import Plan
from sparsebert.model.loading import Head, load_model
from sparsebert.model.positions import extend_positions

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
    "running",
    "sparsify",
]

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
