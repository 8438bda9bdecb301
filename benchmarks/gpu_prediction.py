"""What the Triton kernels should cost on GPUs that were not at hand: a prediction, not a measurement.

    python benchmarks/gpu_prediction.py      the tables of docs/gpu.md; needs the triton package and no GPU

Counted: from the kernels as compiled for sm_80, the instructions of one step of a tile's walk and the bytes it loads;
from the pattern, the steps, and for FlexAttention the blocks of 128 x 128 that hold an entry. Assumed: a pass takes
the longest of (1) reading and writing each tensor once from memory, (2) what its steps load from the second-level
cache, (3) issuing its instructions, plus LAUNCH for each kernel; dense attention computes at DENSE_SHARE of the peak.
Published peaks of both cards; half the second-level cache's nominal 64 bytes a clock and SM.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from attention import HEADS, ROWS, SIZE, structured
from gpu_kernels import compiled, instructions, kinds, launches

from sparsebert.attention.triton_index import PIECE
from sparsebert.attention.triton_launch import TILE
from sparsebert.patterns import Pattern

LAUNCH = 3e-6  # seconds a kernel
DENSE_SHARE = 0.6
BLOCK = 128  # FlexAttention's
FLEX_OVERHEAD = 1.1
WARPS = 4
TYPES = {"float16": torch.float16, "float32": torch.float32}


@dataclass(frozen=True)
class Card:
    """Published figures."""

    name: str
    sms: int
    clock: float  # cycles a second
    memory: float  # bytes a second
    peaks: dict[str, float]  # operations a second of dense products

    @property
    def cache(self) -> float:
        return 0.5 * 64 * self.sms * self.clock

    @property
    def issue(self) -> float:
        """Instructions of a warp issued a second: four schedulers an SM."""
        return 4 * self.sms * self.clock


CARDS = (
    Card("A100", 108, 1.41e9, 1.555e12, {"float16": 312e12, "float32": 19.5e12}),
    Card("L4", 58, 2.04e9, 0.3e12, {"float16": 121e12, "float32": 30.3e12}),
)


def steps_of_kernels(dtype: str) -> dict[str, dict[str, float]]:
    """Instructions a warp issues and bytes a tile loads in one step, by kernel."""
    found = {}
    for launch in launches(kinds()["offsets"], SIZE, TYPES[dtype], everything=False):
        name = launch[0].__name__
        if "tile" in name:
            loop = instructions(compiled(launch, 80))
            found[name] = {"instructions": sum(loop.values()), "bytes": WARPS * 32 * _loaded(loop)}
    return found


def _loaded(loop: dict[str, int]) -> int:
    """Bytes a thread loads."""
    sizes = {"128": 16, "64": 8, "U16": 2, "U8": 1}
    return sum(
        count * next((size for part, size in sizes.items() if part in name.split(".")), 4)
        for name, count in loop.items()
        if name.startswith("LDG")
    )


def sparse_seconds(card: Card, pattern: Pattern, batch: int, dtype: str, kernels: Any, backward: bool) -> float:
    length, itemsize = pattern.length, TYPES[dtype].itemsize
    tensor = batch * HEADS * length * SIZE * itemsize
    lines = TILE // SIZE
    steps = batch * -(-length // lines) * (pattern.kept / length)  # of all heads: a tile's steps are a row's entries
    passes = [("tile_forward", 4, 3)]
    if backward:
        passes += [("tile_backward_rows", 6, 3), ("tile_backward_columns", 7, 4)]
    total = 0.0
    for name, tensors, num_launches in passes:
        one = kernels[name]
        issue = steps * WARPS * one["instructions"] / card.issue
        bound = max(tensors * tensor / card.memory, steps * one["bytes"] / card.cache, issue)
        total += bound + num_launches * LAUNCH
    return total


def dense_seconds(card: Card, length: int, batch: int, dtype: str, backward: bool, share: float = 1.0) -> float:
    operations = (14 if backward else 4) * length**2 * SIZE * HEADS * batch
    tensor = batch * HEADS * length * SIZE * TYPES[dtype].itemsize
    moved = (12 if backward else 4) * tensor / card.memory
    return max(share * operations / (DENSE_SHARE * card.peaks[dtype]), moved) + (3 if backward else 1) * LAUNCH


def kept_blocks(pattern: Pattern) -> float:
    """The share of FlexAttention's blocks that hold an entry."""
    across = -(-pattern.length // BLOCK)
    counts = []
    for head in range(pattern.heads):
        rows, keys = np.divmod(pattern.entries(head), pattern.length)
        counts.append(len(np.unique(rows // BLOCK * across + keys // BLOCK)))
    return float(np.mean(counts)) / across**2


def main() -> None:
    kernels = {dtype: steps_of_kernels(dtype) for dtype in TYPES}
    print("| kernel, one step of a tile | type | instructions a warp | bytes loaded |\n|---|---|---|---|")
    for dtype, steps in kernels.items():
        for name, one in steps.items():
            print(f"| {name} | {dtype} | {one['instructions']} | {one['bytes']} |")
    print(f"\nTiles of {TILE // SIZE} lines, pieces of {PIECE} entries. Predicted microseconds:\n")
    print("| card | type | pass | n x batch | Triton | FlexAttention (blocks kept) | dense | Triton against dense |")
    print("|---|---|---|---|---|---|---|---|")
    made = {length: structured(length) for length in ROWS}
    blocks = {length: kept_blocks(pattern) for length, pattern in made.items()}
    for card in CARDS:
        for dtype in TYPES:
            for backward in (False, True):
                for length, batch in ROWS.items():
                    ours = sparse_seconds(card, made[length], batch, dtype, kernels[dtype], backward)
                    dense = dense_seconds(card, length, batch, dtype, backward)
                    share = min(1.0, blocks[length])
                    flex = dense_seconds(card, length, batch, dtype, backward, FLEX_OVERHEAD * share)
                    which = "forward+backward" if backward else "forward"
                    times = (
                        f"{1e6 * ours:.0f} | {1e6 * flex:.0f} ({share:.0%}) | {1e6 * dense:.0f} | {dense / ours:.1f}x"
                    )
                    print(f"| {card.name} | {dtype} | {which} | {length} x {batch} | {times} |")


if __name__ == "__main__":
    main()
