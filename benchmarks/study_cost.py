"""Of what matrix products sustain on one thread, which share does training reach? The estimate of a study uses it.

Alternates products and pre-training steps, in processor time, and prints the median ratio.
Run: python benchmarks/study_cost.py [--model minilm] [--length 128] [--rows 16] [--rounds 5] [--precision bfloat16]
"""

import argparse
import tempfile
import time
from pathlib import Path
from statistics import median

import torch

from sparsebert.text import prepare_corpus
from sparsebert.training.operations import flops_per_token, product_speed
from sparsebert.training.pretraining import PretrainingObjective, corpus_parts
from sparsebert.training.starting_points import load_for_corpus, shape_of


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--model", default="minilm")
    arguments.add_argument("--length", type=int, default=128)
    arguments.add_argument("--rows", type=int, default=16)
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--precision", choices=["float32", "bfloat16"], default="float32")
    given = arguments.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        vocabulary = 8000 if given.model.startswith("scratch:") else None
        store = prepare_corpus(
            ["builtin:python-docs"], Path(folder) / "corpus", model=given.model, train_vocab=vocabulary, workers=1
        )
        shape = shape_of(given.model)
        model = load_for_corpus(given.model, store, given.length, seed=0)
        parts = corpus_parts(store, batch_size=given.rows, length=given.length, seed=0)
        objective = PretrainingObjective(model, parts, parts(0, 1))
        optimiser = torch.optim.AdamW(objective.parameters(), lr=1e-4, fused=True)
        work = given.rows * given.length * flops_per_token(shape, store.vocab_size, given.length)
        ratios, seconds = [], []
        for step in range(given.rounds + 1):
            products = product_speed(1)
            started = time.process_time()
            optimiser.zero_grad()
            with torch.autocast("cpu", torch.bfloat16, enabled=given.precision == "bfloat16"):
                loss = objective(step, 0).total
            loss.backward()
            optimiser.step()
            seconds.append(time.process_time() - started)
            ratios.append(work / seconds[-1] / products)
        # The first step also allocates.
        ratio, step_seconds = median(ratios[1:]), median(seconds[1:])
        size = f"{given.model}, {given.rows} x {given.length}, {given.precision}"
        print(f"{size}: {work:.3g} operations and {step_seconds:.2f} s a step, {ratio:.2f} of products' speed")


if __name__ == "__main__":
    main()
