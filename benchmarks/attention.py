"""How fast is attention over a pattern, against dense attention in the same alternating run?

    python benchmarks/attention.py                    the table of docs/results/attention.md
    python benchmarks/attention.py --lengths 128 512  some rows of it
    python benchmarks/attention.py --threads 2        with two threads
    python benchmarks/attention.py --scaling          wall time with one thread over that with two, by turns
    python benchmarks/attention.py --isa avx2         torch, its matrix library and the kernel all held to AVX2
    python benchmarks/attention.py --repeat 5         five runs, and in how many each row came within 10 % of its target
    python benchmarks/attention.py --baselines        also SDPA with the pattern as a bool tensor, eager, FlexAttention
    python benchmarks/attention.py --memory           peak memory of forward and backward at n = 16384
    python benchmarks/attention.py --figure FILE.svg  speed-up against n, with the bound of memory and arithmetic
    python benchmarks/attention.py --device cpu       on a machine with a GPU; there it runs gpu_attention.py instead

CPU-time and wall medians. What each baseline runs: unmasked SDPA is torch's fused CPU kernel, forward and backward;
with a bool tensor it stays fused (dropout or a mask that needs a gradient would make it leave that path); eager is
matmul, softmax, matmul; FlexAttention is compiled, forward only, for it has no CPU backward.
"""

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention as sdpa

from sparsebert import attend, patterns
from sparsebert.attention.sparse_library import ISA_VARIABLE, ISAS, isa
from sparsebert.patterns import Pattern

HEADS, SIZE = 12, 64
ROWS = {128: 16, 512: 4, 1024: 2, 4096: 1, 16384: 1}  # input length: batch
TARGETS = {128: (5, 5.5), 512: (16, 16), 1024: (25, 27), 4096: (85, 90), 16384: (120, None)}


def structured(length: int) -> Pattern:
    """Border, and random offsets with both signs, drawn for each head: 3 distances within 64 at 128, else 5 within
    256, which makes 6 and 10 offsets."""
    count, reach = (3, 64) if length <= 128 else (5, 256)
    draw = np.random.default_rng(0)
    distances = [draw.choice(np.arange(1, reach + 1), count, replace=False).tolist() for _ in range(HEADS)]
    offsets = [sorted([*head, *(-distance for distance in head)]) for head in distances]
    return patterns.from_offsets(length=length, offsets=offsets, border=True)


def unstructured(length: int) -> Pattern:
    return patterns.random(length, HEADS, sparsity=0.83) | patterns.border(length)


KINDS = {"structured": structured, "unstructured": unstructured}


@dataclass
class Problem:
    """Tensors as BERT lays them out, [batch, n, heads, d] seen as [batch, heads, n, d]."""

    length: int
    batch: int
    pattern: Pattern

    def __post_init__(self) -> None:
        shape = (self.batch, self.length, HEADS, SIZE)
        self.leaves = [torch.randn(shape).transpose(1, 2).requires_grad_() for _ in range(3)]
        self.grad = torch.randn(shape).transpose(1, 2)

    def call(self, attention: Callable[..., Tensor], backward: bool) -> None:
        if not backward:
            with torch.no_grad():
                attention(*self.leaves)
            return
        torch.autograd.grad(attention(*self.leaves), self.leaves, self.grad)

    def ideal(self, backward: bool, bandwidth: float, arithmetic: float) -> float:
        """Seconds that moving each tensor once, or the multiply-adds alone, would take, whichever is longer."""
        tensor = 4 * self.batch * HEADS * self.length * SIZE
        entries = self.batch * self.pattern.kept
        moved = (11 if backward else 4) * tensor + (2 if backward else 0) * 4 * entries
        return max(moved / bandwidth, (12 if backward else 4) * SIZE * entries / arithmetic)


def variants(problem: Problem, every: bool) -> dict[str, Callable[..., Tensor]]:
    pattern = problem.pattern
    found: dict[str, Callable[..., Tensor]] = {
        "dense": sdpa,
        "sparse": lambda *leaves: attend(*leaves, pattern=pattern, backend="sparse"),
    }
    if every and problem.length <= 4096:
        keep = pattern.keep()[None]
        bias = torch.zeros(keep.shape).masked_fill(~keep, -torch.inf)
        found["dense, bool"] = lambda *leaves: sdpa(*leaves, attn_mask=keep)
        found["eager"] = lambda q, k, v: torch.softmax(q @ k.transpose(-1, -2) * SIZE**-0.5 + bias, -1) @ v
    return found


def flex_forward(problem: Problem) -> Callable[..., Tensor]:
    """Compiled FlexAttention with the pattern as its BlockMask."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    keep = problem.pattern.keep()
    blocks = create_block_mask(
        lambda b, h, q, k: keep[h, q, k], None, HEADS, problem.length, problem.length, device="cpu"
    )
    compiled = torch.compile(flex_attention)
    return lambda *leaves: compiled(*(leaf.detach() for leaf in leaves), block_mask=blocks)


def alternate(problem: Problem, attentions: dict[str, Callable[..., Tensor]], backward: bool, rounds: int) -> dict:
    """Medians of CPU and wall time; variants take turns, the quick one three times a turn."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in attentions}
    for turn in range(rounds + 1):
        for name, attention in attentions.items():
            for _ in range(3 if name.startswith("sparse") else 1):
                cpu, wall = time.process_time(), time.perf_counter()
                problem.call(attention, backward)
                if turn:
                    times[name].append((time.process_time() - cpu, time.perf_counter() - wall))
    return {name: tuple(median(column) for column in zip(*runs, strict=True)) for name, runs in times.items()}


def machine_limits() -> tuple[float, float]:
    """Bytes a second one thread moves (reads and writes), and float32 operations a second it computes."""
    source, target = torch.ones(2, 16 * 2**20)
    square = torch.randn(1024, 1024)
    copies, products = [], []
    for _ in range(7):
        start = time.process_time()
        target.copy_(source)
        copies.append(time.process_time() - start)
        start = time.process_time()
        square @ square
        products.append(time.process_time() - start)
    return 2 * 4 * source.numel() / min(copies), 2 * 1024**3 / min(products)


def rounds_for(length: int) -> int:
    return {128: 15, 512: 15, 1024: 11, 4096: 5}.get(length, 1)


def measure(kind: str, length: int, options: argparse.Namespace, limits: tuple[float, float]) -> list[dict]:
    problem = Problem(length, ROWS[length], KINDS[kind](length))
    results = []
    for backward in (False, True):
        attentions = variants(problem, options.baselines)
        if options.baselines and not backward and length <= 1024:
            attentions["flex"] = flex_forward(problem)
        times = alternate(problem, attentions, backward, rounds_for(length))
        ideal = problem.ideal(backward, limits[0], limits[1])
        results.append(
            {
                "kind": kind,
                "length": length,
                "batch": ROWS[length],
                "density": round(problem.pattern.density, 4),
                "pass": "forward+backward" if backward else "forward",
                "target": TARGETS[length][backward] if kind == "structured" else (2.3 if backward else 2.5),
                "cpu_ms": {name: round(1e3 * cpu, 2) for name, (cpu, _) in times.items()},
                "wall_ms": {name: round(1e3 * wall, 2) for name, (_, wall) in times.items()},
                "speedup": round(times["dense"][0] / times["sparse"][0], 1),
                "of_bound": round(ideal / times["sparse"][0], 2),
                "bound_speedup": round(times["dense"][0] / ideal, 1),
            }
        )
        print_row(results[-1])
    return results


def print_row(row: dict) -> None:
    cpu = "  ".join(f"{name} {value}" for name, value in row["cpu_ms"].items())
    wall = "  ".join(f"{name} {value}" for name, value in row["wall_ms"].items())
    target = "" if row["target"] is None else f" (target {row['target']}x)"
    print(
        f"{row['kind']} n={row['length']} batch={row['batch']} {row['pass']}: {row['speedup']}x{target}, "
        f"{row['of_bound']:.0%} of the bound | CPU ms: {cpu} | wall ms: {wall}",
        flush=True,
    )


def memory_of(variant: str, length: int) -> None:
    """Peak memory above the inputs, of one forward and backward; run in a process of its own."""
    problem = Problem(length, 1, structured(length))
    attention = variants(problem, every=False)[variant]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    problem.call(attention, backward=True)
    print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)


def memory() -> None:
    for length in (4096, 16384):
        for variant in ("sparse", "dense"):
            command = [sys.executable, __file__, "--memory-of", variant, str(length)]
            peak = float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
            outputs = 4 * 4 * HEADS * length * SIZE / 2**20
            print(f"n={length} {variant}: {peak:.0f} MiB above the inputs ({outputs:.0f} MiB are output and gradients)")


def figure(results: list[dict], path: Path) -> None:
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    matplotlib.rcParams["svg.hashsalt"] = "sparsebert"
    canvas, axes = pyplot.subplots(figsize=(6, 4))
    for name, colour in (("forward", "C0"), ("forward+backward", "C1")):
        rows = [row for row in results if row["kind"] == "structured" and row["pass"] == name]
        lengths = [row["length"] for row in rows]
        axes.loglog(lengths, [row["speedup"] for row in rows], "o-", color=colour, label=name)
        axes.loglog(lengths, [row["bound_speedup"] for row in rows], "--", color=colour, label=f"{name}, bound")
    axes.set(xlabel="input length n", ylabel="speed-up over dense SDPA", xticks=list(ROWS), xticklabels=list(ROWS))
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.legend()
    canvas.tight_layout()
    canvas.savefig(path, metadata={"Date": None})


def scaling(lengths: list[int]) -> None:
    """What a second thread brings to dense and to sparse attention, in wall time."""

    def with_threads(count: int, attention: Callable[..., Tensor]) -> Callable[..., Tensor]:
        def run(*leaves: Tensor) -> Tensor:
            torch.set_num_threads(count)
            return attention(*leaves)

        return run

    for length in lengths:
        problem = Problem(length, ROWS[length], structured(length))
        both = variants(problem, every=False).items()
        turns = {f"{name} {count}": with_threads(count, attention) for name, attention in both for count in (1, 2)}
        for backward in (False, True):
            wall = {name: times[1] for name, times in alternate(problem, turns, backward, rounds_for(length)).items()}
            dense, sparse = wall["dense 1"] / wall["dense 2"], wall["sparse 1"] / wall["sparse 2"]
            which = "forward+backward" if backward else "forward"
            print(
                f"n={length} {which}: dense {dense:.2f}, sparse {sparse:.2f}, {sparse / dense:.0%} of dense's",
                flush=True,
            )


def hold_to_avx2() -> None:
    """Start again with AVX2 as the widest vectors for everyone; torch reads its variables when it is loaded."""
    settings = {"ATEN_CPU_CAPABILITY": "avx2", "MKL_ENABLE_INSTRUCTIONS": "AVX2", ISA_VARIABLE: "avx2"}
    if any(os.environ.get(name) != value for name, value in settings.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | settings)


def print_summary(runs: list[list[dict]]) -> None:
    for rows in zip(*runs, strict=True):
        speedups, target = [row["speedup"] for row in rows], rows[0]["target"]
        met = sum(speedup >= 0.9 * (target or 0) for speedup in speedups)
        verdict = "" if target is None else f"; within 10 % of {target}x in {met} of {len(rows)}"
        bound = median(row["of_bound"] for row in rows)
        print(
            f"{rows[0]['kind']} n={rows[0]['length']} {rows[0]['pass']}: median {median(speedups)}x "
            f"({min(speedups)} to {max(speedups)}), {bound:.0%} of the bound{verdict}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lengths", type=int, nargs="+", default=[128, 512, 1024, 4096])
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--scaling", action="store_true")
    parser.add_argument("--isa", choices=["avx2"], help="the widest vectors that torch and the kernel may use")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--baselines", action="store_true")
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--memory-of", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--figure", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    if options.device == "cuda":
        import gpu_attention

        return gpu_attention.table(options.lengths, list(gpu_attention.TYPES), gpu_attention.ROUNDS)
    if options.isa:
        hold_to_avx2()
    torch.set_num_threads(options.threads)
    if options.memory_of:
        return memory_of(options.memory_of[0], int(options.memory_of[1]))
    if options.memory:
        return memory()
    if options.scaling:
        return scaling(options.lengths)
    limits = machine_limits()
    print(
        f"{platform.machine()}, torch {torch.__version__} ({torch.backends.cpu.get_cpu_capability()}), kernel "
        f"{ISAS[isa()]}, {options.threads} thread(s), {limits[0] / 1e9:.1f} GB/s, {limits[1] / 1e9:.0f} GFLOP/s"
    )
    runs: list[list[dict]] = []
    for _ in range(options.repeat):
        runs.append([])
        for kind in options.kinds:
            for length in options.lengths:
                if kind == "structured" or length <= 1024:
                    runs[-1] += measure(kind, length, options, limits)
    if options.repeat > 1:
        print_summary(runs)
    if options.json:
        options.json.write_text(json.dumps(runs[-1], indent=1) + "\n")
    if options.figure:
        figure(runs[-1], options.figure)
    return None


if __name__ == "__main__":
    main()
