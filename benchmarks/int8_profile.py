"""Where does the time of an int8 encoder go? Shares of the products by shape, of attention, and of all the rest.

    python benchmarks/int8_profile.py
    python benchmarks/int8_profile.py --cases 1x512 8x512 1x4096

minilm's weights under the pattern of int8_layers.py, one thread, CPU time. A product counts with what is fused into it
(codes, scales, bias, GELU, residual, norm). The rest is embeddings and Python: what a second thread does not speed up.
"""

import argparse
import ctypes
import time
from collections import defaultdict

import torch
from int8_layers import sparse

from sparsebert import quantize
from sparsebert.attention.sparse_library import library
from sparsebert.layers.int8_library import LinearCall, checked, run_linear
from sparsebert.layers.int8_steps import Steps

spent: dict[str, float] = defaultdict(float)


def timed_run(steps: Steps) -> None:
    """The calls of one run, one by one."""
    for call in steps.calls:
        is_linear = isinstance(call, LinearCall)
        start = time.process_time()
        checked((run_linear() if is_linear else library().sb_forward)(ctypes.byref(call)))
        spent[f"{call.inputs} to {call.outputs}" if is_linear else "attention"] += time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", default=["1x128", "1x512", "1x4096", "8x512"], help="rows x tokens")
    parser.add_argument("--tokens", type=int, default=16_384, help="run through each case")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    Steps.run = timed_run
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
