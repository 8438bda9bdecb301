"""Which attention weights dropout lets through, as its definition; csrc/dropout.h and the Triton kernels draw so."""

import numpy as np
import torch
from jaxtyping import Bool
from torch import Tensor

_GOLDEN = 0x9E3779B97F4A7C15


def _mixed(x: np.ndarray) -> np.ndarray:
    """splitmix64's finaliser."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def survivors(seed: int, batch: int, heads: int, length: int, rate: float) -> Bool[Tensor, "batch heads n n"]:
    """A function of seed, example, head, query and key, these two counted where their tokens stand."""
    with np.errstate(over="ignore"):  # all of it is arithmetic modulo 2**64, and 2**32
        stream = _mixed(np.array([(seed + _GOLDEN) % 2**64], dtype=np.uint64))
        stream = _mixed(stream + np.arange(batch, dtype=np.uint64)[:, None])
        stream = _mixed(stream + np.arange(heads, dtype=np.uint64))
        row = _mixed(stream[..., None] + np.arange(length, dtype=np.uint64) * np.uint64(_GOLDEN))[..., None]
        x = row.astype(np.uint32) + np.arange(length, dtype=np.uint32) * np.uint32(0x9E3779B9)
        x = (x ^ (x >> np.uint32(16))) * np.uint32(0x7FEB352D)
        x = ((x ^ (x >> np.uint32(15))) * np.uint32(0x846CA68B)) ^ (row >> np.uint64(32)).astype(np.uint32)
        x = (x ^ (x >> np.uint32(16))) * np.uint32(0x7FEB352D)
        x = (x ^ (x >> np.uint32(15))) * np.uint32(0x846CA68B)
        x = x ^ (x >> np.uint32(16))
    return torch.from_numpy(x >= np.uint32(min(int(rate * 2**32), 2**32 - 1)))
