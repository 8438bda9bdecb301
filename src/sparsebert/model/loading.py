"""load_model(): any source, any head, any pattern; refuses what does not fit and says in a line what is new."""

import contextlib
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal

import torch
from huggingface_hub.errors import StrictDataclassError
from transformers import BertConfig
from transformers.utils import logging as transformers_logging

from sparsebert import draws
from sparsebert.errors import ModelError
from sparsebert.model import bert
from sparsebert.model.config import SparseBertConfig
from sparsebert.model.folder_checks import folder_config
from sparsebert.model.quantised_loading import is_quantised_folder, load_quantised
from sparsebert.model.saving import no_bar
from sparsebert.model.sources import model_folder, scratch_config
from sparsebert.patterns import Pattern
from sparsebert.settings import refuse_unknown

Head = Literal["none", "pretraining", "masked_lm", "sequence_classification", "multiple_choice", "question_answering"]

CLASSES: dict[str, type[bert.Sparse]] = {
    "none": bert.SparseBertModel,
    "pretraining": bert.SparseBertForPreTraining,
    "masked_lm": bert.SparseBertForMaskedLM,
    "sequence_classification": bert.SparseBertForSequenceClassification,
    "multiple_choice": bert.SparseBertForMultipleChoice,
    "question_answering": bert.SparseBertForQuestionAnswering,
}
# Fields of the configuration that are not the caller's to set: arguments, or what makes a decoder.
_NOT_SETTINGS = {
    *("pattern", "vocab_size", "use_cache", "is_decoder", "is_encoder_decoder", "add_cross_attention"),
    *("architectures", "transformers_version"),
}
_SETTINGS = {one.name for one in fields(SparseBertConfig)} - _NOT_SETTINGS | {"num_labels", "dropout"}


def load_model(
    source: str | Path,
    head: Head = "none",
    *,
    pattern: Pattern | None = None,
    sparsity: float | None = None,
    vocab_size: int | None = None,
    seed: int = 0,
    **config_changes: Any,
) -> Any:
    """A sparse BERT from a folder, a hub id, `minilm` or `scratch:tiny|mini|base`.

    pattern: replaces the one saved with the model, if any. sparsity: of that pattern, where it carries a ranking to
    pick from (Pattern.at_sparsity). vocab_size: of a model from scratch. seed: of whatever
    is new (heads, or everything from scratch). Other arguments change the configuration: its fields by their names
    (hidden_dropout_prob, id2label, attention_backend ...), num_labels, and dropout, which sets those of hidden states
    and attention alike.
    """
    refuse_unknown(str(head), CLASSES, ModelError, "there is no head")
    if not isinstance(source, str | Path):
        raise ModelError(f"source is {source!r}; expected a folder, a hub id, minilm or scratch:tiny|mini|base")
    source, cls, changes = str(source), CLASSES[head], _checked(config_changes)
    # Weights that no checkpoint holds are drawn from torch's generator: give it a known state, then put its own back.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(draws.seed_for(seed, "model/new-weights"))
        model = (
            _from_scratch(cls, source, vocab_size, changes)
            if source.startswith("scratch:")
            else _from_folder(cls, source, changes)
        )
    if vocab_size not in (None, model.config.vocab_size):
        raise ModelError(
            f"{source} has a vocabulary of {model.config.vocab_size}, not {vocab_size}; leave vocab_size out, "
            "it is for models from scratch"
        )
    if sparsity is not None:
        pattern = _ranked(source, model.pattern if pattern is None else pattern).at_sparsity(sparsity)
    return model if pattern is None else model.set_pattern(pattern)


def _ranked(source: str, pattern: Pattern | None) -> Pattern:
    if pattern is None:
        raise ModelError(
            f"{source} has no pattern to pick a sparsity from; pass pattern=Pattern.load(...) of a file with a ranking"
        )
    return pattern


def _checked(changes: dict[str, Any]) -> dict[str, Any]:
    """Changes of the configuration under the names it has for them; an unknown name is refused."""
    for name in changes:
        refuse_unknown(name, _SETTINGS, ModelError, "load_model has no argument")
    changes = dict(changes)
    dropout = changes.pop("dropout", None)
    both = {} if dropout is None else {"hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout}
    return {**both, **changes}


def _from_scratch(cls: type[bert.Sparse], source: str, vocab_size: int | None, changes: dict[str, Any]) -> Any:
    config = scratch_config(source, vocab_size)
    try:
        return cls(SparseBertConfig.from_bert(config, **changes))
    except (ValueError, TypeError, KeyError, RuntimeError, ArithmeticError, StrictDataclassError) as error:
        raise ModelError(f"{source} cannot be built with {changes}: {error}") from error


def _from_folder(cls: type[bert.Sparse], source: str, changes: dict[str, Any]) -> Any:
    if is_quantised_folder(source):
        return load_quantised(Path(source), lambda: cls(_config(Path(source), changes)))
    folder = model_folder(source)
    # New heads are named below in a line of our own; transformers' table would say the same at length.
    with _quiet_transformers():
        return cls.from_pretrained(folder, config=_config(folder, changes), local_files_only=True)


def _config(folder: Path, changes: dict[str, Any]) -> SparseBertConfig:
    fields = folder_config(folder)
    try:
        if fields["model_type"] == "sparsebert":
            return SparseBertConfig.from_pretrained(folder, **changes)
        return SparseBertConfig.from_bert(BertConfig.from_pretrained(folder), **changes)
    except (ValueError, TypeError, OSError, StrictDataclassError) as error:
        raise ModelError(f"{folder}/config.json cannot be used: {error}") from error


@contextlib.contextmanager
def _quiet_transformers() -> Iterator[None]:
    """No warnings and no progress bar of its own while it reads weights."""
    level = transformers_logging.get_verbosity()
    transformers_logging.set_verbosity_error()
    try:
        with no_bar():
            yield
    finally:
        transformers_logging.set_verbosity(level)
