"""Where does the time of an int8 encoder go? Shares of the products by shape, of attention, and of all the rest.

    python benchmarks/int8_profile.py
    python benchmarks/int8_profile.py --cases 1x512 8x512 1x4096

minilm's weights under the pattern of int8_layers.py, one thread, CPU time. A product counts with what is fused into it
(codes, scales, bias, GELU, residual, norm). The rest is embeddings and Python: what a second thread does not speed up.
"""

import argparse
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import torch
from int8_layers import sparse

from sparsebert import quantize
from sparsebert.attention import sparse_kernel
from sparsebert.model import quantisation

spent: dict[str, float] = defaultdict(float)


def timed(function: Callable[..., Any], name: Callable[..., str]) -> Callable[..., Any]:
    def call(*arguments: Any, **settings: Any) -> Any:
        start = time.process_time()
        result = function(*arguments, **settings)
        spent[name(*arguments)] += time.process_time() - start
        return result

    return call


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", default=["1x128", "1x512", "1x4096", "8x512"], help="rows x tokens")
    parser.add_argument("--tokens", type=int, default=16_384, help="run through each case")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    quantisation.linear = timed(quantisation.linear, lambda _, layer: f"{layer.inputs} to {layer.outputs}")
    sparse_kernel.forward = timed(sparse_kernel.forward, lambda *_: "attention")
    for case in asked.cases:
        rows, length = map(int, case.split("x"))
        model, tokens = quantize(sparse(length)), torch.randint(1000, 2000, (rows, length))
        turns = max(3, asked.tokens // tokens.numel())
        with torch.inference_mode():
            model(tokens)
            spent.clear()
            start = time.process_time()
            for _ in range(turns):
                model(tokens)
            total = time.process_time() - start
        shares = [f"{name} {seconds / total:.0%}" for name, seconds in spent.items()]
        speed = turns * tokens.numel() / total
        print(
            f"{case}: {speed:,.0f} tokens/s; {', '.join(shares)}, rest {1 - sum(spent.values()) / total:.0%}",
            flush=True,
        )


if __name__ == "__main__":
    main()
