"""How much faster is an encoder on two threads than on one? It needs a machine with nothing else to do.

    python benchmarks/encoder_threads.py
    python benchmarks/encoder_threads.py --cases 8x512 --precisions int8
    python benchmarks/encoder_threads.py --cpu

minilm's weights under the pattern of int8_layers.py. One thread and two take turns in one process; time by the clock,
as CPU time counts both threads; medians. Asked for: 1.8x at 8 rows of 512 tokens, and at one row of 4,096.

--cpu asks why not 2x. Threads that wait then sleep, and CPU time is work alone: what the first of two threads does more
than the second is what it does alone, and what both do more than one does by itself is what sharing a machine costs
(memory, caches, clock). The former holds beside other work too.
"""

import argparse
import os
import sys
import time
from collections.abc import Iterator
from statistics import median
from typing import Any

if "--cpu" in sys.argv:  # before torch starts its threads
    os.environ |= {"OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": "0"}

import torch
from int8_layers import sparse

from sparsebert.layers import full_speed_products
from sparsebert.model.precision import PRECISIONS


def by_turns(model: Any, tokens: torch.Tensor, rounds: int) -> Iterator[tuple[int, float, float, float]]:
    """Threads, and seconds by the clock, of all threads and of the first one."""
    with torch.inference_mode(), full_speed_products():
        for turn in range(rounds + 2):
            for threads in (1, 2):
                torch.set_num_threads(threads)
                start = time.perf_counter(), time.process_time(), time.thread_time()
                model(tokens)
                end = time.perf_counter(), time.process_time(), time.thread_time()
                if turn >= 2:  # the first turns build the index and start the threads
                    yield threads, end[0] - start[0], end[1] - start[1], end[2] - start[2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", default=["8x512", "1x4096"], help="rows x tokens")
    parser.add_argument("--precisions", nargs="+", choices=list(PRECISIONS), default=["fp32", "bf16", "int8"])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--cpu", action="store_true", help="CPU time of each thread instead of time by the clock")
    asked = parser.parse_args()
    if asked.cpu:
        print("| rows x tokens | precision | one thread, ms | two, both, ms | alone in the first, ms | sharing costs |")
        print("|---|---|---|---|---|---|")
    else:
        print("| rows x tokens | precision | one thread, tokens/s | two threads, tokens/s | ratio |")
        print("|---|---|---|---|---|")
    for case in asked.cases:
        rows, length = map(int, case.split("x"))
        tokens = torch.randint(1000, 2000, (rows, length), generator=torch.Generator().manual_seed(0))
        for precision in asked.precisions:
            runs = list(by_turns(PRECISIONS[precision](sparse(length)), tokens, asked.rounds))
            one, two = (
                [median(column) for column in zip(*(spent for n, *spent in runs if n == count), strict=True)]
                for count in (1, 2)
            )
            if asked.cpu:
                spent = one[1], two[1], max(0.0, 2 * two[2] - two[1])
                shown = [*(f"{1e3 * seconds:.1f}" for seconds in spent), f"{two[1] / one[1] - 1:+.0%}"]
            else:
                speeds = [tokens.numel() / spent[0] for spent in (one, two)]
                shown = [*(f"{speed:,.0f}" for speed in speeds), f"{speeds[1] / speeds[0]:.2f}x"]
            print(f"| {case} | {precision} | {' | '.join(shown)} |", flush=True)


if __name__ == "__main__":
    main()
