"""What does a step of search or adapt by distillation cost? Tokens a second of CPU time, and the first losses.

    python benchmarks/distillation_steps.py --corpus CORPUS
    PYTHONPATH=OTHER/src python benchmarks/distillation_steps.py --corpus CORPUS --precisions bfloat16
    python benchmarks/distillation_steps.py --corpus CORPUS --kind unstructured --length 512 --batch-size 4 --steps 3

The second line times the sources of another checkout, to be held against this one's: run both in turn. minilm, rows of
128 tokens unless told; two steps go before the ones that are timed.
"""

import argparse
import contextlib
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch

from sparsebert import layers
from sparsebert.runs import AdaptRun, SearchRun
from sparsebert.runs.run import RunSettings
from sparsebert.training import signals
from sparsebert.training.launch import joined
from sparsebert.training.update import StepReport, Updater

# What fit() runs under; earlier sources have no such thing.
full_speed = getattr(layers, "full_speed_products", contextlib.nullcontext)
WARMUP, PEER_TIMEOUT = 2, 7.0


@contextlib.contextmanager
def stepping(run: RunSettings) -> Iterator[Callable[[int], StepReport]]:
    """Steps of a run, one by one, outside of fit()."""
    with tempfile.TemporaryDirectory() as folder, joined(PEER_TIMEOUT) as ranks, signals.remembered() as received:
        prepared = run.prepare(Path(folder) / "run")
        objective = prepared.objective.train()
        objective.micro_batches = prepared.config.micro_batches
        updater = Updater(objective, prepared.config, ranks)
        yield lambda step: updater.step(step, received)


def timed(run: RunSettings, steps: int) -> str:
    """Tokens a second and the losses of the first steps."""
    with stepping(run) as take:
        for step in range(WARMUP):
            take(step)
        start = time.process_time()
        reports = [take(step) for step in range(WARMUP, WARMUP + steps)]
        taken = time.process_time() - start
    losses = ", ".join(f"{report.loss:.5f}" for report in reports[:4])
    return f"{sum(report.tokens for report in reports) / taken:,.0f} tokens/s, losses {losses}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--length", type=int, default=128, help="of a row, in tokens")
    parser.add_argument("--kind", choices=["structured", "unstructured"], default="structured", help="of gate")
    parser.add_argument("--precisions", nargs="+", default=["float32", "bfloat16"])
    asked = parser.parse_args()
    torch.set_num_threads(1)
    for precision in asked.precisions:
        given = {"model": "minilm", "corpus": asked.corpus, "steps": 240, "batch_size": asked.batch_size}
        given["length"] = asked.length
        runs = {
            "search": SearchRun.read({**given, "sparsity": 0.9, "kind": asked.kind, "precision": precision}),
            "adapt": AdaptRun.read({**given, "pattern": "star", "precision": precision}),
        }
        for name, run in runs.items():
            with full_speed():
                print(f"{name} in {precision}: {timed(run, asked.steps)}", flush=True)


if __name__ == "__main__":
    main()
