"""Which recipe finds the better pattern: every candidate from one base model, with one budget of steps.

    python benchmarks/recipes.py CORPUS --out DIR [--length 64] [--rows 16] [--base-steps 450] [--steps 100]

Trains a dense base (MLM and NSP), searches with each recipe from it, and prints the held-out MLM loss of the base
weights under each frozen pattern, before any adaptation, beside hand-made patterns. Resumes when called again.
"""

import argparse
from pathlib import Path
from typing import Any

import torch

from sparsebert import Pattern, patterns
from sparsebert.batches import PretrainingBatches
from sparsebert.model import load_model, running
from sparsebert.progress import for_this_terminal
from sparsebert.runs import ImportanceRun, SearchRun
from sparsebert.text import TokenStore
from sparsebert.training.pretraining import PretrainingObjective, corpus_parts

RECIPES: dict[str, dict[str, Any]] = {
    "structured, default": {"kind": "structured"},
    "structured, paper at alpha's rate 5e-2": {"kind": "structured", "preset": "paper", "gate": {"rate": 5e-2}},
    "unstructured, default": {"kind": "unstructured"},
    "unstructured, pooled": {"kind": "unstructured", "gate": {"pooled": True}},
    "unstructured, pooled, entries at the full rate": {
        "kind": "unstructured",
        "gate": {"pooled": True, "entry_share": 1.0},
    },
}


def held_out_loss(
    folder: Path,
    store: TokenStore,
    pattern: Pattern | None,
    rows: int,
    length: int,
    *,
    seed: int = 0,
    batches: int = 16,
) -> float:
    """MLM loss of a run's weights under a pattern."""
    held_out = PretrainingBatches(store, split="held_out", seed=seed, batch_size=rows, length=length)
    model = load_model(str(folder / "model"), "pretraining").eval()
    source = corpus_parts(store, batch_size=rows, length=length, seed=seed)
    objective = PretrainingObjective(model, source, held_out, num_held_out=batches)
    with torch.no_grad(), running(model, pattern):
        return objective.evaluate(0)["mlm_loss"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--model", default="minilm")
    parser.add_argument("--sparsity", type=float, default=0.88)
    for name, value in {"length": 64, "rows": 16, "base-steps": 450, "steps": 100, "seed": 0}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    asked = parser.parse_args()
    store, length, rows = TokenStore.open(asked.corpus), asked.length, asked.rows
    common: dict[str, Any] = {"corpus": asked.corpus, "length": length, "batch_size": rows, "seed": asked.seed}
    base = ImportanceRun(kind="attention", model=asked.model, steps=asked.base_steps, learning_rate=2e-4, **common)
    base.make(asked.out / "base", for_this_terminal("base"))
    searched: dict[str, Pattern] = {}
    for name, recipe in RECIPES.items():
        run = SearchRun(
            model=str(asked.out / "base" / "model"),
            steps=asked.steps,
            sparsity=asked.sparsity,
            objective="mlm",
            **common,
            **recipe,
        )
        folder = asked.out / name.replace(",", "").replace(" ", "-").replace("'", "")
        run.make(folder, for_this_terminal(name))
        searched[name] = Pattern.load(folder / "pattern.safetensors")
    heads = next(iter(searched.values())).heads
    handmade = {
        "star": patterns.star(length),
        "big_bird": patterns.big_bird(length, heads, seed=0),
        "random": patterns.random(length, heads, sparsity=asked.sparsity, seed=0),
    }
    print(f"{'pattern':<48} sparsity   held-out MLM loss of the base weights")
    shown: dict[str, Pattern | None] = {"dense": None, **handmade, **searched}
    for name, pattern in shown.items():
        loss = held_out_loss(asked.out / "base", store, pattern, rows, length)
        print(f"{name:<48} {0.0 if pattern is None else pattern.sparsity:7.2%}   {loss:.3f}")


if __name__ == "__main__":
    main()
