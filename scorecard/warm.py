"""Imports that a cold process would spend seconds on; nothing is run, so this process can be forked from."""

import matplotlib.backends.backend_agg
import sklearn.metrics
import torch
import transformers.models.bert.modeling_bert
from transformers.conversion_mapping import get_checkpoint_conversion_mapping

import sparsebert.runs

IMPORTED = (matplotlib, sklearn, transformers, sparsebert)


def warm_up() -> None:
    torch.set_num_threads(1)
    get_checkpoint_conversion_mapping("bert")  # some thousand regular expressions
