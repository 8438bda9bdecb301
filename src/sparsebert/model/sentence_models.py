"""Models of sentence-transformers: the encoder of transformers inside them is what a pattern is given to.

The library is never imported from here: a model of it can only be met where its user has imported it.
"""

import sys
from typing import Any

from sparsebert.errors import ModelError
from sparsebert.model.lengths import longest_input
from sparsebert.model.plan import plan_of
from sparsebert.patterns import Pattern

_LIBRARY = "sentence_transformers.base.model"
_LENGTH = "max_seq_length_before"  # what it was before a pattern made it shorter


def encoder_of(model: Any) -> Any:
    """The encoder inside a SentenceTransformer or a CrossEncoder; any other model is one itself."""
    if not is_sentence_model(model):
        return model
    found = [module for module in model.modules() if hasattr(module, "auto_model")]
    if len(found) != 1:
        raise ModelError(
            f"this {type(model).__name__} holds {len(found)} encoders of transformers; expected one, so sparsify each "
            "of them by itself (module.auto_model)"
        )
    return found[0].auto_model


def is_sentence_model(model: Any) -> bool:
    """Whether it is a model of sentence-transformers."""
    library = sys.modules.get(_LIBRARY)
    return library is not None and isinstance(model, library.BaseModel)


def show_patterns() -> None:
    """Let models of sentence-transformers have `pattern` as all sparse models have, if the library is in use."""
    library: Any = sys.modules.get(_LIBRARY)
    base = getattr(library, "BaseModel", None)  # none while the library is being loaded
    if base is not None and not hasattr(base, "pattern"):
        base.pattern = property(_pattern, doc="Who may attend to whom; None: everyone.")


def fit_length(model: Any) -> None:
    """Let max_seq_length say what the model takes now: a longer text is then cut, and no error."""
    if not is_sentence_model(model) or model.max_seq_length is None:
        return
    before = model.__dict__.pop(_LENGTH, model.max_seq_length)
    model.max_seq_length = min(before, longest_input(encoder_of(model)))
    if model.max_seq_length != before:
        model.__dict__[_LENGTH] = before


def _pattern(model: Any) -> Pattern | None:
    plan = plan_of(encoder_of(model))
    pattern: Pattern | None = None if plan is None else plan.owner.pattern
    return pattern
