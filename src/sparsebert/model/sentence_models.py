"""Models of sentence-transformers: the encoder of transformers inside them is what a pattern is given to.

The library is never imported from here: a model of it can only be met where its user has imported it.
"""

import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from sparsebert.errors import ModelError
from sparsebert.files import write_atomic
from sparsebert.model.card import CARD, described_again, opening
from sparsebert.model.lengths import longest_input
from sparsebert.model.plan import pattern_of
from sparsebert.patterns import Pattern

_LIBRARY = "sentence_transformers.base.model"
_LENGTH = "max_seq_length_before"  # what it was before a pattern made it shorter


def encoder_of(model: Any) -> Any:
    """The encoder inside a SentenceTransformer or a CrossEncoder; any other model is one itself."""
    if not is_sentence_model(model):
        return model
    found = _with_encoders(model)
    if len(found) != 1:
        raise ModelError(
            f"this {type(model).__name__} holds {len(found)} encoders of transformers; expected one, so sparsify each "
            "of them by itself (module.auto_model)"
        )
    return found[0].auto_model


def _with_encoders(model: Any) -> list[Any]:
    return [module for module in model.modules() if hasattr(module, "auto_model")]


def is_sentence_model(model: Any) -> bool:
    """Whether it is a model of sentence-transformers."""
    library = sys.modules.get(_LIBRARY)
    return library is not None and isinstance(model, library.BaseModel)


def show_patterns() -> None:
    """Let models of sentence-transformers have `pattern` as all sparse models have, and tell of it in the cards that
    they write, if the library is in use."""
    library: Any = sys.modules.get(_LIBRARY)
    base = getattr(library, "BaseModel", None)  # none while the library is being loaded
    if base is not None and not hasattr(base, "pattern"):
        base.pattern = property(_pattern, doc="Who may attend to whom; None: everyone.")
        base._create_model_card = _and_attention(base._create_model_card)


def _and_attention(write: Callable[..., None]) -> Callable[..., None]:
    """The library's writer of cards, followed by what ours says of attention."""

    @wraps(write)
    def write_both(model: Any, path: str, *args: Any, **kwargs: Any) -> None:
        write(model, path, *args, **kwargs)
        card = Path(path) / CARD
        if not card.is_file() or len(_with_encoders(model)) != 1:
            return
        text = card.read_text(encoding="utf-8")
        _, opened = opening(Path(path), type(model).__name__)
        write_atomic(card, described_again(text, encoder_of(model), opened).encode())

    return write_both


def fit_length(model: Any) -> None:
    """Let max_seq_length say what the model takes now: a longer text is then cut, and no error."""
    if not is_sentence_model(model) or model.max_seq_length is None:
        return
    before = model.__dict__.pop(_LENGTH, model.max_seq_length)
    model.max_seq_length = min(before, longest_input(encoder_of(model)))
    if model.max_seq_length != before:
        model.__dict__[_LENGTH] = before


def _pattern(model: Any) -> Pattern | None:
    return pattern_of(encoder_of(model))
