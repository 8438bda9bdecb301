"""Where does the time of a training step go? Shares of CPU time by kind of work, for each kind of run.

    python benchmarks/step_shares.py --corpus CORPUS --data DATA
    python benchmarks/step_shares.py --corpus CORPUS --data DATA --precision bfloat16 --runs finetune

torch's profiler over a few steps of minilm on one thread, after a few that are not counted. Text: 16 rows of 128
tokens. Fine-tuning: batches of 32 rows as the task has them, dense and under star. A Markdown table.
"""

import argparse
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import torch
from distillation_steps import stepping
from torch.profiler import ProfilerActivity, profile

from sparsebert.layers import full_speed_products
from sparsebert.runs import AdaptRun, FinetuneRun, PretrainRun, SearchRun
from sparsebert.runs.run import RunSettings

# By the first that is found in an operation's name.
KINDS: dict[str, tuple[str, ...]] = {
    "attention under the pattern or gate": ("sparsebert::",),
    "dense attention": ("scaled_dot_product", "flash_attention", "aten::bmm", "softmax"),
    "matrix products": ("aten::mm", "aten::addmm", "aten::linear"),
    "dropout's draws": ("bernoulli", "dropout"),
    "GELU": ("gelu",),
    "norms": ("layer_norm",),
    "AdamW": ("adamw",),
    "gradients: freed, measured, clipped": ("zero_grad", "vector_norm", "foreach"),
    "zeros": ("aten::fill_", "aten::zero_"),
    "conversions and copies": ("aten::copy_", "aten::_to_copy"),
}


def kind_of(operation: str) -> str:
    return next((kind for kind, names in KINDS.items() if any(name in operation.lower() for name in names)), "the rest")


def shares(run: RunSettings, warmup: int, steps: int) -> tuple[float, dict[str, float]]:
    """Tokens a second of CPU time, and the share of each kind of work."""
    with stepping(run) as take:
        for step in range(warmup):
            take(step)
        start = time.process_time()
        tokens = sum(take(step).tokens for step in range(warmup, warmup + steps))
        taken = time.process_time() - start
        with profile(activities=[ProfilerActivity.CPU]) as profiled:
            for step in range(warmup + steps, warmup + 2 * steps):
                take(step)
    spent: dict[str, float] = defaultdict(float)
    for one in profiled.key_averages():
        spent[kind_of(one.key)] += one.self_cpu_time_total
    return tokens / taken, {kind: value / sum(spent.values()) for kind, value in spent.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True, help="holds the official folders of tasks")
    parser.add_argument("--precision", choices=["float32", "bfloat16"], default="float32")
    parser.add_argument("--runs", nargs="+", default=["search", "adapt", "pretrain", "finetune"])
    parser.add_argument("--tasks", nargs="+", default=["cola", "mrpc"])
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--warmup", type=int, default=4)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    text = {"model": "minilm", "corpus": asked.corpus, "steps": 240, "batch_size": 16, "precision": asked.precision}
    task = {"model": "minilm", "data": str(asked.data), "length": 128, "precision": asked.precision}
    kinds: dict[str, Callable[[], dict[str, RunSettings]]] = {
        "search": lambda: {"search, weights frozen": SearchRun.read({**text, "sparsity": 0.9})},
        "adapt": lambda: {"adapt under star": AdaptRun.read({**text, "pattern": "star"})},
        "pretrain": lambda: {"pretrain under star": PretrainRun.read({**text, "pattern": "star"})},
        "finetune": lambda: {
            f"{name}, {pattern or 'dense'}": FinetuneRun.read({**task, "task": name, "pattern": pattern})
            for name in asked.tasks
            for pattern in (None, "star")
        },
    }
    runs = {name: run for kind in asked.runs for name, run in kinds[kind]().items()}
    with full_speed_products():
        found = {name: shares(run, asked.warmup, asked.steps) for name, run in runs.items()}
    print(f"| {asked.precision} | {' | '.join(found)} |\n|{'---|' * (len(found) + 1)}")
    print(f"| tokens a second | {' | '.join(f'{speed:,.0f}' for speed, _ in found.values())} |")
    for kind in [*KINDS, "the rest"]:
        print(f"| {kind} | {' | '.join(f'{part.get(kind, 0.0):.0%}' for _, part in found.values())} |")


if __name__ == "__main__":
    main()
