"""The sparse class of any encoder class, made when it is asked for, and known to the Auto classes from then on.

RobertaForMaskedLM, RobertaConfig -> SparseRobertaForMaskedLM, SparseRobertaConfig
"""

from typing import Any, Literal

import transformers
from transformers import (
    CONFIG_MAPPING,
    AutoConfig,
    AutoModel,
    AutoModelForMaskedLM,
    AutoModelForMultipleChoice,
    AutoModelForNextSentencePrediction,
    AutoModelForPreTraining,
    AutoModelForQuestionAnswering,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    BertConfig,
)

from sparsebert.errors import ModelError
from sparsebert.model import bert
from sparsebert.model.config import ON_DISK, SparseBertConfig, SparseConfig, sparse_twin
from sparsebert.model.sparse import Sparse, dense_class

Head = Literal[
    "none",
    "pretraining",
    "masked_lm",
    "sequence_classification",
    "token_classification",
    "multiple_choice",
    "question_answering",
]
HEADS: dict[str, Any] = {
    "none": AutoModel,
    "pretraining": AutoModelForPreTraining,
    "masked_lm": AutoModelForMaskedLM,
    "sequence_classification": AutoModelForSequenceClassification,
    "token_classification": AutoModelForTokenClassification,
    "multiple_choice": AutoModelForMultipleChoice,
    "question_answering": AutoModelForQuestionAnswering,
}
_CONFIGS: dict[type[Any], type[Any]] = {BertConfig: SparseBertConfig}
_CLASSES: dict[tuple[type[Any], type[Any]], type[Any]] = {
    (dense_class(one, Sparse), BertConfig): one
    for name, one in vars(bert).items()
    if name.startswith("SparseBert") and name != "SparseBertConfig"
}


def sparse_class(family: type[Any], config_class: type[Any] | None = None) -> Any:
    """The sparse class of an encoder class of transformers, or of one like them; itself, where it is sparse."""
    if issubclass(family, Sparse):
        return family
    config_class = config_class or family.config_class
    key = family, config_class
    if key not in _CLASSES:
        written = {
            "__module__": __name__,
            "__doc__": f"{family.__name__} under a pattern.",
            "config_class": sparse_config(config_class),
        }
        made = type(f"Sparse{family.__name__}", (Sparse, family), written)
        _CLASSES.setdefault(key, made)  # its heads may have been made meanwhile, and it among them
    return _CLASSES[key]


def sparse_config(config_class: type[Any]) -> Any:
    """The sparse class of a configuration class; itself, where it is sparse."""
    if issubclass(config_class, SparseConfig):
        return config_class
    if config_class not in _CONFIGS:
        _CONFIGS[config_class] = sparse_twin(config_class, __name__)
        register(config_class)
    return _CONFIGS[config_class]


def register(config_class: type[Any]) -> None:
    """Let the Auto classes know the sparse classes of a family."""
    for auto in (*HEADS.values(), AutoModelForNextSentencePrediction):
        family = auto._model_mapping.get(config_class, None)
        if isinstance(family, type):
            auto.register(sparse_config(config_class), sparse_class(family, config_class), exist_ok=True)


def config_of(model_type: str) -> Any:
    """The sparse configuration class of a family, by the name that transformers has for it."""
    try:
        return sparse_config(CONFIG_MAPPING[model_type])
    except KeyError:
        raise ModelError(
            f"transformers knows no model type {model_type!r}; for an encoder of your own call AutoConfig.register and "
            "AutoModel.register first"
        ) from None


def class_for(head: str, config: Any) -> Any:
    """The sparse class of a family with a head; config: one of its sparse configurations."""
    family = dense_class(type(config), SparseConfig)
    auto = HEADS[head]
    if head == "pretraining" and family not in AutoModelForNextSentencePrediction._model_mapping:
        auto = AutoModelForMaskedLM  # what such a family was pre-trained with, or what comes nearest to BERT's
    found = auto._model_mapping.get(family, None)
    if not isinstance(found, type):
        raise ModelError(f"transformers has no {config.family} model with the head {head!r}; choose another head")
    return sparse_class(found)


SparseBertConfig.of_family = config_of
AutoConfig.register(ON_DISK, SparseBertConfig, exist_ok=True)
register(BertConfig)


def __getattr__(name: str) -> Any:
    """Classes made here by their names, in a process that has not made them yet: what a pickled model asks for."""
    for one in (*_CLASSES.values(), *_CONFIGS.values()):
        if one.__name__ == name:
            return one
    family = getattr(transformers, name.removeprefix("Sparse"), None) if name.startswith("Sparse") else None
    if not isinstance(family, type):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return sparse_config(family) if name.endswith("Config") else sparse_class(family)
