"""How fast a model runs on this machine, in which numbers and under which pattern, and how far its embeddings move.

rows of text -> the model in every variant, by turns -> tokens a second, and the distance to the dense one in float32
"""

import copy
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from transformers import AutoTokenizer

from sparsebert.attention.sparse_library import is_built
from sparsebert.errors import ConfigError
from sparsebert.layers.bfloat16 import has_fast_bfloat16
from sparsebert.layers.float32 import full_speed_products
from sparsebert.model import extend_positions, load_model, unsparsify
from sparsebert.model.head_pooling import pooled
from sparsebert.model.heads import give_pattern, pattern_of
from sparsebert.model.lengths import longest_input
from sparsebert.model.long_inputs import reaching
from sparsebert.model.pooling import Pooling, pooling_of
from sparsebert.model.positions import positions_of
from sparsebert.model.precision import PRECISIONS, check_precision, in_precision
from sparsebert.model.sources import model_folder
from sparsebert.patterns import Pattern, find, window_border
from sparsebert.text import TokenStore, source_of
from sparsebert.text.builtin import python_docs
from sparsebert.training.starting_points import require_own_vocabulary

_LENGTH, _SPARSITY = 128, 0.9  # of the pattern that stands for "sparse" where the user has none yet
_ROWS, _TOKENS = 4, 2048  # of text for the distance: at least so many rows and tokens
DENSE = "dense"


@dataclass(frozen=True)
class EncoderTiming:
    """One way to run the model at one length."""

    length: int
    pattern: str
    sparsity: float
    precision: str
    tokens_per_second: float
    speedup: float  # against the dense model in float32
    distance: float  # mean 1 - cosine of embeddings to those of the dense model in float32


@dataclass(frozen=True)
class _Variant:
    pattern: str
    precision: str
    model: Any


def measure_encoder(
    source: str,
    *,
    patterns: Sequence[str] = (),
    precisions: Sequence[str] | None = None,
    lengths: Sequence[int] | None = None,
    corpus: Path | None = None,
    rounds: int = 5,
) -> Iterator[EncoderTiming]:
    """Rows of each length, one at a time, through every variant by turns; CPU time on one thread, else the clock.

    patterns: files or builders' names; none: the model's own, or a window and the border of 90 % sparsity. precisions:
    none: all that this machine has. lengths: none: 128 and as many tokens as the model has positions for. corpus: a
    prepared folder; none: the built-in text. Beyond its positions a model gets its own ones again, tile by tile.
    """
    if source.startswith("scratch:"):
        raise ConfigError(f"{source} has no weights yet; measure a model that was trained")
    names = list(precisions or available_precisions())
    for name in names:
        check_precision(name)
    stream, pooling = _token_stream(source, corpus), pooling_of(source_of(source))
    loaded = load_model(source_of(source), "none").eval().requires_grad_(False)
    if lengths is None:
        longest = longest_input(loaded)
        lengths = sorted({min(_LENGTH, longest), longest})
    rows = [_rows(stream, length) for length in lengths]  # before any work: the text may be too short
    wanted = ["fp32", *(name for name in names if name != "fp32")]
    variants = _variants(loaded, list(patterns), wanted, max(lengths))
    for of_length in rows:
        yield from _measured(variants, of_length, rounds, pooling, names)


def available_precisions() -> list[str]:
    """Those that this machine runs faster than float32, and float32."""
    able = {"fp32": True, "bf16": has_fast_bfloat16(), "int8": is_built()}
    return [name for name in PRECISIONS if able[name]]


def recommended(timings: Sequence[EncoderTiming], loss: float) -> EncoderTiming | None:
    """The fastest whose embeddings lie no further from the dense model's than `loss`."""
    able = [timing for timing in timings if timing.distance <= loss]
    return max(able, key=lambda timing: timing.tokens_per_second, default=None)


def _variants(loaded: Any, names: list[str], precisions: list[str], longest: int) -> list[_Variant]:
    """Copies of the model. The dense one in float32 comes first: the others are held against it."""
    own = pattern_of(loaded)
    shown: list[tuple[str, Pattern | None]] = [(DENSE, None)]
    if names:
        shown += [(name, find(name, _LENGTH)) for name in names]
    else:
        default = window_border(_LENGTH, sparsity=_SPARSITY)
        shown.append((f"window_border {_SPARSITY:.0%}", default) if own is None else ("its own", own))
    made = []
    for name, pattern in shown:
        if pattern is not None and pattern.rule is None and longest > pattern.length:
            raise ConfigError(
                f"pattern {name} has {pattern.length} positions and no rule; measure up to that length, or use another"
            )
        for precision in precisions:
            model = copy.deepcopy(loaded)
            if longest > positions_of(model):
                extend_positions(model, longest)
            model = unsparsify(model) if pattern is None else give_pattern(model, pattern)
            made.append(_Variant(name, precision, in_precision(model, precision)))
    return made


def _token_stream(source: str, corpus: Path | None) -> tuple[Int[np.ndarray, " tokens"], int, int]:
    """Tokens of running text, and what stands before and after a text."""
    if corpus is not None:
        store = TokenStore.open(corpus)
        require_own_vocabulary(source, store)
        return np.asarray(store.shard(0).shard.ids, dtype=np.int64), store.special.cls, store.special.sep
    tokenizer: Any = AutoTokenizer.from_pretrained(str(model_folder(source_of(source))), local_files_only=True)
    lines = [line for line in python_docs().decode().split("\n") if line]
    words = tokenizer.backend_tokenizer  # as saved it may cut texts, and fill them up with tokens that are none
    words.no_truncation()
    words.no_padding()
    read = words.encode_batch_fast(lines, add_special_tokens=False)
    first, last = tokenizer.cls_token_id, tokenizer.sep_token_id
    if first is None or last is None:
        raise ConfigError(f"the tokenizer of {source} has no tokens around a text; measure on a prepared corpus")
    return np.concatenate([np.array(one.ids, dtype=np.int64) for one in read]), first, last


def _rows(stream: tuple[Int[np.ndarray, " tokens"], int, int], length: int) -> Int[Tensor, "rows n"]:
    ids, first, last = stream
    inner = length - 2
    count = max(_ROWS, -(-_TOKENS // max(length, 1)))
    if inner < 1 or count * inner > len(ids):
        raise ConfigError(
            f"rows of {length} tokens were asked for; this text has room for 3 to {len(ids) // _ROWS + 2:,}, so choose "
            "a length in between, or a larger corpus"
        )
    body = torch.from_numpy(ids[: count * inner].reshape(count, inner))
    edges = (torch.full((count, 1), first), torch.full((count, 1), last))
    return torch.cat([edges[0], body, edges[1]], 1)


@torch.inference_mode()
def _measured(
    variants: list[_Variant], rows: Int[Tensor, "rows n"], rounds: int, pooling: Pooling, shown: list[str]
) -> Iterator[EncoderTiming]:
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    times: list[list[float]] = [[] for _ in variants]
    with full_speed_products():
        embeddings = [_embeddings(one.model, rows, pooling) for one in variants]  # which warms the caches too
        for turn in range(rounds):
            row = rows[turn % len(rows)][None]
            for one, spent in zip(variants, times, strict=True):
                start = clock()
                one.model(input_ids=row)
                spent.append(clock() - start)
    for one, spent, made in zip(variants, times, embeddings, strict=True):
        if one.precision not in shown:
            continue
        cosines = torch.nn.functional.cosine_similarity(made, embeddings[0], dim=-1)
        pattern = pattern_of(one.model)
        yield EncoderTiming(
            length=rows.shape[1],
            pattern=one.pattern,
            sparsity=0.0 if pattern is None else reaching(pattern, rows.shape[1]).crop(rows.shape[1]).sparsity,
            precision=one.precision,
            tokens_per_second=rows.shape[1] / median(spent),
            speedup=median(times[0]) / median(spent),
            distance=max(0.0, float(1 - cosines.mean())),
        )


def _embeddings(model: Any, rows: Int[Tensor, "rows n"], pooling: Pooling) -> Float[Tensor, "rows width"]:
    made = [pooled(model(input_ids=row[None])[0].float(), torch.ones(1, rows.shape[1]), pooling) for row in rows]
    return torch.cat(made)
