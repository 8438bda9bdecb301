"""load_model(): any source, any head, any pattern; refuses what does not fit and says in a line what is new."""

import contextlib
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from huggingface_hub.errors import StrictDataclassError
from transformers.utils import logging as transformers_logging

from sparsebert import draws
from sparsebert.errors import ModelError
from sparsebert.model.config import ON_DISK, SparseBertConfig, SparseConfig, setting_names
from sparsebert.model.families import HEADS, Head, class_for, config_of
from sparsebert.model.folder_checks import family_of, folder_config
from sparsebert.model.head_pooling import HEADS_OF_WHOLE_TEXTS
from sparsebert.model.probe import check_family
from sparsebert.model.quantised_loading import is_quantised_folder, load_quantised
from sparsebert.model.saving import no_bar
from sparsebert.model.sources import model_folder, scratch_config
from sparsebert.model.sparse import dense_class
from sparsebert.patterns import Pattern
from sparsebert.settings import refuse_unknown

logger = logging.getLogger(__name__)

# Fields of the configuration that are not the caller's to set: arguments, or what makes a decoder.
_NOT_SETTINGS = {
    *("pattern", "vocab_size", "use_cache", "is_decoder", "is_encoder_decoder", "add_cross_attention"),
    *("architectures", "transformers_version"),
}
# Of hidden states and attention, as the families call them.
_DROPOUTS = {
    *("hidden_dropout_prob", "attention_probs_dropout_prob", "dropout", "attention_dropout"),
    *("embedding_dropout", "mlp_dropout"),
}


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
    """A sparse model from a folder or a hub id of any family that sparsify takes, `minilm` or `scratch:tiny|mini|base`.

    head: "pretraining" is that of BERT, words and the order of segments; of families without it, words alone.

    pattern: replaces the one saved with the model, if any. sparsity: of that pattern, where it carries a ranking to
    pick from (Pattern.at_sparsity). vocab_size: of a model from scratch. seed: of whatever
    is new (heads, or everything from scratch). Other arguments change the configuration: its fields by their names
    (hidden_dropout_prob, id2label, attention_backend ...), num_labels, head_pooling ("mean" or "cls": what a head for
    whole texts reads), and dropout, which sets those of hidden states and attention alike.
    """
    refuse_unknown(str(head), HEADS, ModelError, "there is no head")
    if config_changes.get("head_pooling") is not None and head not in HEADS_OF_WHOLE_TEXTS:
        raise ModelError(
            f"head_pooling is {config_changes['head_pooling']!r} but the head is {head!r}, which reads no text as a "
            f"whole; leave it out, or choose the head {' or '.join(HEADS_OF_WHOLE_TEXTS)}"
        )
    if not isinstance(source, str | Path):
        raise ModelError(f"source is {source!r}; expected a folder, a hub id, minilm or scratch:tiny|mini|base")
    source = str(source)
    # Weights that no checkpoint holds are drawn from torch's generator: give it a known state, then put its own back.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(draws.seed_for(seed, "model/new-weights"))
        model = (
            _from_scratch(head, source, vocab_size, config_changes)
            if source.startswith("scratch:")
            else _from_folder(head, source, config_changes)
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


def _checked(changes: dict[str, Any], config_class: Any) -> dict[str, Any]:
    """Changes of the configuration under the names it has for them; an unknown name is refused."""
    known = setting_names(config_class)
    for name in changes:
        refuse_unknown(
            name, known - _NOT_SETTINGS | {"num_labels", "dropout"}, ModelError, "load_model has no argument"
        )
    changes = dict(changes)
    dropout = changes.pop("dropout", None)
    return {**({} if dropout is None else dict.fromkeys(_DROPOUTS & known, dropout)), **changes}


def dropouts(source: str) -> dict[str, float]:
    """What a folder's configuration drops in training, by the names that its family has for that."""
    config = read_config(source)
    return {name: getattr(config, name) for name in sorted(_DROPOUTS & setting_names(type(config)))}


def _from_scratch(head: Head, source: str, vocab_size: int | None, given: dict[str, Any]) -> Any:
    changes = _checked(given, SparseBertConfig)
    config = scratch_config(source, vocab_size)
    try:
        sparse = SparseBertConfig.from_bert(config, **changes)
        return class_for(head, sparse)(sparse)
    except (ValueError, TypeError, KeyError, RuntimeError, ArithmeticError, StrictDataclassError) as error:
        raise ModelError(f"{source} cannot be built with {changes}: {error}") from error


def _from_folder(head: Head, source: str, given: dict[str, Any]) -> Any:
    if is_quantised_folder(source):
        return load_quantised(Path(source), lambda: _built(head, _config(Path(source), given)))
    folder = model_folder(source)
    config = _config(folder, given)
    # New heads are named below in a line of our own; transformers' table would say the same at length.
    with _quiet_transformers():
        return class_for(head, config).from_pretrained(folder, config=config, local_files_only=True)


def _built(head: Head, config: Any) -> Any:
    cls = class_for(head, config)
    check_family(cls)
    return cls(config)


def read_config(source: str) -> Any:
    """The sparse configuration of a folder of any family, or of a hub id, without its weights."""
    return _config(Path(source) if is_quantised_folder(source) else model_folder(source), {})


def _config(folder: Path, given: dict[str, Any]) -> Any:
    fields = folder_config(folder)
    sparse = config_of(family_of(folder, fields))
    changes = _checked(given, sparse)
    try:
        if fields["model_type"] == ON_DISK:
            return sparse.from_pretrained(folder, **changes)
        return sparse.from_family(dense_class(sparse, SparseConfig).from_pretrained(folder), **changes)
    except (ValueError, TypeError, OSError, AttributeError, StrictDataclassError) as error:
        raise ModelError(f"{folder}/config.json cannot be used: {' '.join(str(error).split())}") from error


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
