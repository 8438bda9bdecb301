"""What a pattern buys: the time of one forward of a whole encoder, dense and under the pattern."""

import time
from dataclasses import dataclass
from statistics import median

import torch

from sparsebert.layers.float32 import full_speed_products
from sparsebert.model import extend_positions, load_model
from sparsebert.model.attachment import running
from sparsebert.model.heads import give_pattern
from sparsebert.model.positions import positions_of
from sparsebert.patterns import Pattern
from sparsebert.text import source_of


@dataclass(frozen=True)
class ForwardTime:
    """CPU seconds of one forward, medians."""

    length: int  # tokens
    dense: float
    sparse: float
    keys_per_query: float

    @property
    def speedup(self) -> float:
        return self.dense / self.sparse


def time_forward(model: str, pattern: Pattern, length: int, rounds: int = 3) -> ForwardTime:
    """One row of so many tokens, by turns without and with the pattern, which is rebuilt at that length."""
    encoder, longer = load_model(source_of(model), "none").eval(), pattern.at(length)
    if length > positions_of(encoder):
        extend_positions(encoder, length)
    give_pattern(encoder, longer)
    tokens = torch.arange(length)[None] % encoder.config.vocab_size
    times: dict[bool, list[float]] = {False: [], True: []}
    with torch.no_grad(), full_speed_products():
        for turn in range(rounds + 1):
            for is_sparse in times:
                with running(encoder, longer if is_sparse else None):
                    start = time.process_time()
                    encoder(tokens)
                    if turn:  # the first turn builds the index and warms the caches
                        times[is_sparse].append(time.process_time() - start)
    return ForwardTime(length, median(times[False]), median(times[True]), longer.keys_per_query)
