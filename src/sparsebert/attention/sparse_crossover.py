"""When sparse is faster than dense: measured, not guessed. `sparsebert bench attention` measures it again."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median

import torch
from torch import Tensor

from sparsebert import patterns
from sparsebert.attention.inputs import Inputs
from sparsebert.attention.sparse import attend_sparse
from sparsebert.patterns import Pattern

# The density at which the sparse kernel and SDPA (given the pattern as a bool tensor) take the same time, forward and
# backward, for unstructured patterns, the harder kind: (longest input, density). docs/results/attention.md has the
# measurement.
CROSSOVER = ((128, 0.70), (2**31, 0.55))


def crossover(length: int) -> float:
    """The density below which the sparse kernel is the faster one at this input length."""
    return next(density for longest, density in CROSSOVER if length <= longest)


@dataclass(frozen=True)
class Timing:
    """CPU seconds of one call (medians), forward and backward."""

    length: int
    density: float
    sparse: float
    dense: float

    @property
    def speedup(self) -> float:
        return self.dense / self.sparse


def measure(
    dense: Callable[[Inputs], Tensor],
    lengths: tuple[int, ...] = (128, 512, 1024),
    densities: tuple[float, ...] = (0.1, 0.2, 0.3, 0.4, 0.5),
    heads: int = 12,
    head_size: int = 64,
    tokens: int = 2048,
    rounds: int = 7,
) -> Iterator[Timing]:
    """Sparse and dense by turns in one process, forward and backward, on random patterns with a border."""
    for length in lengths:
        for density in densities:
            pattern = patterns.random(length, heads, sparsity=1 - density) | patterns.border(length)
            inputs = _inputs(max(1, tokens // length), heads, length, head_size, pattern)
            times: dict[str, list[float]] = {"sparse": [], "dense": []}
            for turn in range(rounds + 1):
                for name, backend in (("sparse", attend_sparse), ("dense", dense)):
                    start = time.process_time()
                    output = backend(inputs)
                    torch.autograd.grad(output, (inputs.query, inputs.key, inputs.value), output.detach())
                    if turn:  # the first turn builds the index and warms the caches
                        times[name].append(time.process_time() - start)
            yield Timing(length, pattern.density, median(times["sparse"]), median(times["dense"]))


def _inputs(batch: int, heads: int, length: int, size: int, pattern: Pattern) -> Inputs:
    """Tensors as BERT lays them out."""
    generator = torch.Generator().manual_seed(0)
    query, key, value = (
        torch.randn(batch, length, heads, size, generator=generator).transpose(1, 2).requires_grad_() for _ in range(3)
    )
    return Inputs(query, key, value, pattern, None, 0.0, size**-0.5, None, None)
