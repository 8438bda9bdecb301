"""SparseBERT: learn who needs to attend to whom, and run only that.

The names below load on first use, so that `import sparsebert` and `sparsebert --help` stay instant.
"""

import importlib
from typing import TYPE_CHECKING, Any

from sparsebert.registration import register_when_transformers_loads

if TYPE_CHECKING:
    from sparsebert import gates as gates
    from sparsebert import patterns as patterns
    from sparsebert.attention import attend as attend
    from sparsebert.embeddings import encode as encode
    from sparsebert.errors import SparseBertError as SparseBertError
    from sparsebert.exporting import export as export
    from sparsebert.exporting import export_embedder as export_embedder
    from sparsebert.model import SparseBertConfig as SparseBertConfig
    from sparsebert.model import SparseBertForMaskedLM as SparseBertForMaskedLM
    from sparsebert.model import SparseBertForMultipleChoice as SparseBertForMultipleChoice
    from sparsebert.model import SparseBertForPreTraining as SparseBertForPreTraining
    from sparsebert.model import SparseBertForQuestionAnswering as SparseBertForQuestionAnswering
    from sparsebert.model import SparseBertForSequenceClassification as SparseBertForSequenceClassification
    from sparsebert.model import SparseBertForTokenClassification as SparseBertForTokenClassification
    from sparsebert.model import SparseBertModel as SparseBertModel
    from sparsebert.model import attach as attach
    from sparsebert.model import detach as detach
    from sparsebert.model import extend_positions as extend_positions
    from sparsebert.model import load_model as load_model
    from sparsebert.model import quantize as quantize
    from sparsebert.model import sparsify as sparsify
    from sparsebert.model import to_bfloat16 as to_bfloat16
    from sparsebert.model import unsparsify as unsparsify
    from sparsebert.model.trainer_callback import GateCallback as GateCallback
    from sparsebert.patterns import Pattern as Pattern
    from sparsebert.runs.adapt import adapt as adapt
    from sparsebert.training.comparison import compare as compare

__version__ = "0.1.0"

_HOMES = {
    "sparsebert.attention": ["attend"],
    "sparsebert.embeddings": ["encode"],
    "sparsebert.errors": ["SparseBertError"],
    "sparsebert.exporting": ["export", "export_embedder"],
    "sparsebert.model": [
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
        "sparsify",
        "to_bfloat16",
        "unsparsify",
    ],
    "sparsebert.model.trainer_callback": ["GateCallback"],
    "sparsebert.patterns": ["Pattern"],
    "sparsebert.runs.adapt": ["adapt"],
    "sparsebert.training.comparison": ["compare"],
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
_PACKAGES = ["gates", "patterns"]

__all__ = ["__version__", *_PACKAGES, *_HOME_OF]

register_when_transformers_loads()


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return importlib.import_module(f"sparsebert.{name}")
    if name in _HOME_OF:
        return getattr(importlib.import_module(_HOME_OF[name]), name)
    raise AttributeError(f"module 'sparsebert' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
