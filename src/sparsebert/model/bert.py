"""Sparse BERT, written out: the names that a reader and a type checker find. Other families: model/families.py."""

from transformers import (
    BertForMaskedLM,
    BertForMultipleChoice,
    BertForPreTraining,
    BertForQuestionAnswering,
    BertForSequenceClassification,
    BertForTokenClassification,
    BertModel,
)

from sparsebert.model.config import SparseBertConfig
from sparsebert.model.sparse import Sparse


class SparseBertModel(Sparse, BertModel):
    """The encoder."""

    config_class = SparseBertConfig


class SparseBertForPreTraining(Sparse, BertForPreTraining):
    """The encoder with the MLM and NSP heads."""

    config_class = SparseBertConfig


class SparseBertForMaskedLM(Sparse, BertForMaskedLM):
    """The encoder with the MLM head."""

    config_class = SparseBertConfig


class SparseBertForSequenceClassification(Sparse, BertForSequenceClassification):
    """The encoder with a classifier or regressor on [CLS]."""

    config_class = SparseBertConfig


class SparseBertForTokenClassification(Sparse, BertForTokenClassification):
    """The encoder with a classifier on every token."""

    config_class = SparseBertConfig


class SparseBertForMultipleChoice(Sparse, BertForMultipleChoice):
    """The encoder with one score a choice."""

    config_class = SparseBertConfig


class SparseBertForQuestionAnswering(Sparse, BertForQuestionAnswering):
    """The encoder with a start and an end score a token."""

    config_class = SparseBertConfig
