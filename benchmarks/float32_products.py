"""How fast are products of float32 matrices by torch's usual way, and inside full_speed_products()?

    python benchmarks/float32_products.py

One thread, CPU time, medians by turns; a layer's outputs, and the gradients of its inputs and weights, at the sizes of
minilm and of BERT-base.
"""

import argparse
import contextlib
import time
from collections.abc import Callable
from statistics import median

import torch
from torch import Tensor

from sparsebert.layers import full_speed_products

SIZES = ((384, 384), (384, 1536), (1536, 384), (768, 3072))
WAYS = {"usual": contextlib.nullcontext, "full speed": full_speed_products}


def seconds(product: Callable[[], Tensor], rounds: int) -> dict[str, float]:
    times: dict[str, list[float]] = {name: [] for name in WAYS}
    for turn in range(rounds + 2):
        for name, way in WAYS.items():
            with way():
                start = time.process_time()
                product()
                if turn >= 2:
                    times[name].append(time.process_time() - start)
    return {name: median(spent) for name, spent in times.items()}


@torch.no_grad()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 16, 128, 512, 2048])
    parser.add_argument("--rounds", type=int, default=15)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    print("| rows | inputs, outputs | outputs | inputs' gradients | weights' gradients |\n|---|---|---|---|---|")
    for rows in asked.rows:
        for inputs, outputs in SIZES:
            x, weight, bias = torch.randn(rows, inputs), torch.randn(outputs, inputs), torch.randn(outputs)
            gradient = torch.randn(rows, outputs)
            made = [
                seconds(lambda: torch.nn.functional.linear(x, weight, bias), asked.rounds),  # noqa: B023
                seconds(lambda: gradient @ weight, asked.rounds),  # noqa: B023
                seconds(lambda: gradient.T @ x, asked.rounds),  # noqa: B023
            ]
            giga = 2e-9 * rows * inputs * outputs
            cells = [f"{giga / one['usual']:.0f} → {giga / one['full speed']:.0f}" for one in made]
            print(f"| {rows} | {inputs}, {outputs} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
