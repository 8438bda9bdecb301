"""Comparing two models by their names, as the command line does."""

from pathlib import Path

from sparsebert.errors import ConfigError
from sparsebert.model import load_model
from sparsebert.model.heads import give_pattern, pattern_of
from sparsebert.model.pooling import pooling_of
from sparsebert.patterns import Pattern, find
from sparsebert.text import TokenStore
from sparsebert.training.comparison import ModelComparison, compare
from sparsebert.training.starting_points import require_own_vocabulary, source_of

_LENGTH = 128  # of a pattern that is named and not a file, where no length is given


def compare_sources(
    dense: str,
    sparse: str,
    corpus: Path,
    *,
    pattern: str | None = None,
    rows: int = 256,
    length: int | None = None,
    seed: int = 0,
) -> tuple[ModelComparison, Pattern | None]:
    """Load two models and compare them; also the pattern of the second.

    pattern: a file or a builder's name that the second one is run under.
    """
    store = TokenStore.open(corpus)
    for name in (dense, sparse):
        if name.startswith("scratch:"):
            raise ConfigError(f"{name} has no weights yet; compare models that were trained")
        require_own_vocabulary(name, store)
    one, other = (load_model(source_of(name), "none") for name in (dense, sparse))
    if pattern is not None:
        give_pattern(other, find(pattern, length or _LENGTH, int(other.config.num_attention_heads)))
    pooling = pooling_of(source_of(sparse))
    return compare(one, other, store, rows=rows, length=length, pooling=pooling, seed=seed), pattern_of(other)
