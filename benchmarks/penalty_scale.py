"""How strong must a penalty be to matter? The loss's gradient at alpha, beside that of a penalty with lambda 1.

A lambda at which both are equal drops what helps less than the median. The laptop scale's `penalty_scale` puts the
paper's four lambdas around it. Run: python benchmarks/penalty_scale.py [--model minilm] [--steps 50]
"""

import argparse
import tempfile
from pathlib import Path

import torch

from sparsebert import gates
from sparsebert.model import detach
from sparsebert.text import prepare_corpus
from sparsebert.training.gated import Gated
from sparsebert.training.pretraining import PretrainingObjective, corpus_parts
from sparsebert.training.starting_points import load_for_corpus

ROWS, LENGTH, BATCHES = 8, 128, 12


def trained(model: str, steps: int, folder: Path) -> PretrainingObjective:
    """A model that has learned a little of the text."""
    store = prepare_corpus(["builtin:python-docs"], folder, model=model, workers=1)
    parts = corpus_parts(store, batch_size=ROWS, length=LENGTH, seed=0)
    objective = PretrainingObjective(load_for_corpus(model, store, LENGTH, seed=0), parts, parts(0, 1)).train()
    optimiser = torch.optim.AdamW(objective.parameters(), lr=2e-4, fused=True)
    for step in range(steps):
        optimiser.zero_grad()
        objective(step, 0).total.backward()
        torch.nn.utils.clip_grad_norm_(objective.parameters(), 1.0)
        optimiser.step()
    return objective


def equal_penalties(objective: PretrainingObjective, gate: gates.Structured | gates.Unstructured) -> list[float]:
    """Quantiles 0.1, 0.5, 0.9 and 0.99, over units, of the lambda whose gradient is that of the loss."""
    search = Gated(objective, gate, seed=0).train()
    gradients = []
    for batch in range(BATCHES):
        search.zero_grad()
        gate.penalty_weight = 0.0
        search(1000 + batch, 0).total.backward()
        gradients.append(gate.alpha.grad.clone())
    search.zero_grad()
    gate.penalty_weight = 1.0
    gate.forget()
    gate.penalty().backward()
    ratio = torch.stack(gradients).mean(0).abs() / gate.alpha.grad.abs()
    detach(objective.model)
    return torch.quantile(ratio.flatten(), torch.tensor([0.1, 0.5, 0.9, 0.99])).tolist()


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--model", default="minilm")
    arguments.add_argument("--steps", type=int, default=50)
    given = arguments.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        objective = trained(given.model, given.steps, Path(folder) / "corpus")
        heads = objective.model.config.num_attention_heads
        for kind in (gates.Structured, gates.Unstructured):
            found = equal_penalties(objective, kind(LENGTH, heads, penalty=1.0, steps=240))
            print(f"{kind.__name__}: lambda of equal gradients {', '.join(f'{one:.1e}' for one in found)}")


if __name__ == "__main__":
    main()
