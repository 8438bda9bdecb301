"""How fast is attention over a pattern on this GPU? Fills the table of docs/gpu.md.

    python benchmarks/gpu_attention.py               what benchmarks/attention.py runs where there is a GPU
    python benchmarks/gpu_attention.py --rehearse    without one: two tiny rows through the interpreter, to see it run

Each variant is warmed up, then they take turns; medians of CUDA events. dense is torch's SDPA without the pattern,
which takes FlashAttention in half precision; "dense, bool" is SDPA given the pattern; flex is compiled FlexAttention.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable
from statistics import median

import torch
from attention import HEADS, KINDS, ROWS, SIZE
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention as sdpa

from sparsebert import attend
from sparsebert.patterns import Pattern

TYPES = {"float16": torch.float16, "bfloat16": torch.bfloat16, "float32": torch.float32}
WARM_UP, ROUNDS = 5, 30
LONGEST_DENSE_PATTERN = 4096  # beyond it a bool tensor of heads x n² is too large to be of use


def variants(pattern: Pattern, device: torch.device) -> dict[str, Callable[..., Tensor]]:
    found: dict[str, Callable[..., Tensor]] = {
        "triton": lambda *leaves: attend(*leaves, pattern=pattern, backend="triton"),
        "dense": sdpa,
    }
    if pattern.length <= LONGEST_DENSE_PATTERN:
        keep = pattern.keep()[None].to(device)
        found["dense, bool"] = lambda *leaves: sdpa(*leaves, attn_mask=keep)
        if device.type == "cuda":
            found["flex"] = lambda *leaves: attend(*leaves, pattern=pattern, backend="flex")
    return found


def milliseconds(run: Callable[[], object], device: torch.device) -> float:
    if device.type != "cuda":
        start = time.perf_counter()
        run()
        return 1e3 * (time.perf_counter() - start)
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    run()
    end.record()
    torch.cuda.synchronize()
    return float(begin.elapsed_time(end))


def measured(
    pattern: Pattern, batch: int, dtype: torch.dtype, device: torch.device, rounds: int
) -> dict[str, list[float]]:
    """Medians, forward and forward+backward, by variant."""
    shape = (batch, pattern.length, HEADS, SIZE)
    leaves = [torch.randn(shape, device=device, dtype=dtype).transpose(1, 2).requires_grad_() for _ in range(3)]
    grad = torch.randn(shape, device=device, dtype=dtype).transpose(1, 2)

    def forward(attention: Callable[..., Tensor]) -> Callable[[], object]:
        return torch.no_grad()(lambda: attention(*leaves))

    def both(attention: Callable[..., Tensor]) -> Callable[[], object]:
        return lambda: torch.autograd.grad(attention(*leaves), leaves, grad)

    found: dict[str, list[float]] = {}
    for make in (forward, both):
        runs = {name: make(attention) for name, attention in variants(pattern, device).items()}
        times: dict[str, list[float]] = {name: [] for name in runs}
        for turn in range(-min(WARM_UP, rounds), rounds):
            for name, run in runs.items():
                took = milliseconds(run, device)
                if turn >= 0:
                    times[name].append(took)
        for name, each in times.items():
            found.setdefault(name, []).append(median(each))
    return found


def table(lengths: list[int], types: list[str], rounds: int, rehearsed: bool = False) -> None:
    device = torch.device("cpu" if rehearsed else "cuda")
    name = torch.cuda.get_device_name() if device.type == "cuda" else "no GPU: a rehearsal in the interpreter"
    print(f"{name}, torch {torch.__version__}; milliseconds, forward / forward+backward; medians of {rounds}\n")
    print("| pattern | type | n x batch | kept | triton | flex | dense, bool | dense | against dense |")
    print("|---|---|---|---|---|---|---|---|---|")
    for kind, make in KINDS.items():
        for length in lengths:
            if kind == "unstructured" and length > 1024:
                continue
            pattern, batch = make(length), ROWS.get(length, 1)
            for dtype in types:
                found = measured(pattern, batch, TYPES[dtype], device, rounds)
                cells = [
                    " / ".join(f"{value:.3f}" for value in found[variant]) if variant in found else ""
                    for variant in ("triton", "flex", "dense, bool", "dense")
                ]
                ratio = " / ".join(f"{d / t:.1f}x" for d, t in zip(found["dense"], found["triton"], strict=True))
                print(
                    f"| {kind} | {dtype} | {length} x {batch} | {pattern.density:.2%} | {' | '.join(cells)} | {ratio} |"
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lengths", type=int, nargs="+", default=list(ROWS))
    parser.add_argument("--types", nargs="+", default=list(TYPES), choices=list(TYPES))
    parser.add_argument("--rehearse", action="store_true")
    options = parser.parse_args()
    if options.rehearse:
        if os.environ.get("TRITON_INTERPRET") != "1":  # which is read when triton is first imported
            os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | {"TRITON_INTERPRET": "1"})
        return table([64], ["float32"], rounds=1, rehearsed=True)
    if not torch.cuda.is_available():
        return print("there is no GPU here, so nothing is measured; --rehearse shows that the command works")
    return table(options.lengths, options.types, ROUNDS)


if __name__ == "__main__":
    main()
