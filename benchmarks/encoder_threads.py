"""How much faster is an encoder on two threads than on one? It needs a machine with nothing else to do.

    python benchmarks/encoder_threads.py
    python benchmarks/encoder_threads.py --cases 8x512 --precisions int8

minilm's weights under the pattern of int8_layers.py. One thread and two take turns in one process; time by the clock,
as CPU time counts both threads; medians. Asked for: 1.8x at 8 rows of 512 tokens, and at one row of 4,096.
"""

import argparse
import time
from statistics import median

import torch
from int8_layers import sparse

from sparsebert.layers import full_speed_products
from sparsebert.model.precision import PRECISIONS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", default=["8x512", "1x4096"], help="rows x tokens")
    parser.add_argument("--precisions", nargs="+", choices=list(PRECISIONS), default=["fp32", "bf16", "int8"])
    parser.add_argument("--rounds", type=int, default=15)
    asked = parser.parse_args()
    print("| rows x tokens | precision | one thread, tokens/s | two threads, tokens/s | ratio |")
    print("|---|---|---|---|---|")
    for case in asked.cases:
        rows, length = map(int, case.split("x"))
        tokens = torch.randint(1000, 2000, (rows, length), generator=torch.Generator().manual_seed(0))
        for precision in asked.precisions:
            model = PRECISIONS[precision](sparse(length))
            times: dict[int, list[float]] = {1: [], 2: []}
            with torch.inference_mode(), full_speed_products():
                for turn in range(asked.rounds + 2):
                    for threads, spent in times.items():
                        torch.set_num_threads(threads)
                        start = time.perf_counter()
                        model(tokens)
                        if turn >= 2:  # the first turns build the index and start the threads
                            spent.append(time.perf_counter() - start)
            one, two = (tokens.numel() / median(spent) for spent in times.values())
            print(f"| {case} | {precision} | {one:,.0f} | {two:,.0f} | {two / one:.2f}x |", flush=True)


if __name__ == "__main__":
    main()
