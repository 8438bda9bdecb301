"""Comparing two models by their names, as the command line does."""

from pathlib import Path

from sparsebert.errors import ConfigError
from sparsebert.model import load_model
from sparsebert.model.heads import give_pattern, pattern_of
from sparsebert.model.pooling import pooling_of
from sparsebert.model.precision import check_precision, in_precision
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
    precision: str = "fp32",
    rows: int = 256,
    length: int | None = None,
    seed: int = 0,
) -> tuple[ModelComparison, Pattern | None]:
    """Load two models and compare them; also the pattern of the second.

    pattern: a file or a builder's name that the second one is run under. precision: fp32, bf16 or int8, of the second.
    """
    check_precision(precision)
    store = TokenStore.open(corpus)
    for name in (dense, sparse):
        if name.startswith("scratch:"):
            raise ConfigError(f"{name} has no weights yet; compare models that were trained")
        require_own_vocabulary(name, store)
    one, other = (load_model(source_of(name), "none") for name in (dense, sparse))
    if pattern is not None:
        give_pattern(other, find(pattern, length or _LENGTH, int(other.config.num_attention_heads)))
    other, pooling = in_precision(other, precision), pooling_of(source_of(sparse))
    return compare(one, other, store, rows=rows, length=length, pooling=pooling, seed=seed), pattern_of(other)
