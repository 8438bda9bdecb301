"""Comparing two models by their names, as the command line does."""

import platform
import re
from pathlib import Path

import torch

from sparsebert.embeddings.speed import DENSE, measure_encoder
from sparsebert.errors import ConfigError
from sparsebert.files import write_atomic
from sparsebert.model import load_model
from sparsebert.model.card import CARD, attention_part, opening, with_part
from sparsebert.model.heads import give_pattern, pattern_of
from sparsebert.model.lengths import longest_input
from sparsebert.model.pooling import pooling_of
from sparsebert.model.precision import check_precision, in_precision
from sparsebert.patterns import Pattern, find
from sparsebert.text import TokenStore, source_of
from sparsebert.training.comparison import ModelComparison, compare
from sparsebert.training.starting_points import require_own_vocabulary

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


def require_card(sparse: str, *, pattern: str | None, precision: str) -> None:
    """Refuse, before any work, a card that would tell of another model than the folder holds."""
    folder = Path(source_of(sparse))
    if pattern is not None or precision != "fp32":
        raise ConfigError("a card tells of a model as it was saved; leave out the pattern and the precision")
    if not folder.is_dir():
        raise ConfigError(f"{sparse} is no folder; a card is written into a model folder or a run folder of yours")
    if pattern_of(load_model(folder, "none")) is None:
        raise ConfigError(f"the model of {sparse} has no pattern; a card tells of a sparse one, such as search leaves")


def write_into_card(sparse: str, comparison: ModelComparison, corpus: Path) -> Path:
    """Measure the speed of a sparse model beside the same weights run dense, and write both into its card."""
    folder = Path(source_of(sparse))
    model = load_model(folder, "none")
    longest = longest_input(model)
    timings = measure_encoder(
        sparse, precisions=["fp32"], lengths=sorted({min(_LENGTH, longest), longest}), corpus=corpus
    )
    told = [
        f"{one.tokens_per_second:,.0f} tokens a second at {one.length} tokens ({one.speedup:.2f} times dense)"
        for one in timings
        if one.pattern != DENSE
    ]
    speed = f"{', '.join(told)}; float32, {torch.get_num_threads()} thread(s) of {_processor()}"
    card = folder / CARD
    text = card.read_text(encoding="utf-8") if card.is_file() else "# An encoder under a sparse attention pattern\n"
    part = attention_part(model, opening(folder)[1], comparison.measured(speed=speed))
    write_atomic(card, with_part(text, part).encode())
    return card


def _processor() -> str:
    """The name that the processor has for itself."""
    about = Path("/proc/cpuinfo")  # of Linux
    names = re.findall(r"^model name\s*: (.+)$", about.read_text(), re.MULTILINE) if about.is_file() else []
    return names[0] if names else platform.machine()
