"""Sparsify a sentence encoder: learn a pattern under which minilm's own weights give nearly its own embeddings.

    python examples/sparse_embeddings.py [FOLDER]

A structured gate learns, per head, which distances are needed; the weights stay as they are. A minute of learning loses
something, and the table says how much, on text not learned from. find_pattern is where a longer search belongs.
"""

import sys
from pathlib import Path

import torch
from texts import embed, rows
from torch import Tensor
from transformers.utils.logging import disable_progress_bar

from sparsebert import Pattern, attach, detach, gates, load_model, patterns
from sparsebert.text import load_tokenizer

STEPS, ROWS, LENGTH, SPARSITY = 60, 8, 64, 0.5


def find_pattern(model: torch.nn.Module, ids: Tensor) -> Pattern:
    """The distances that the embeddings need most; any other way to a Pattern of this length fits here."""
    gate = gates.Structured(length=LENGTH, heads=12, sparsity=SPARSITY, steps=STEPS)
    optimiser = torch.optim.AdamW(gate.parameters(), lr=0.1, weight_decay=0.0)
    batches = ids.split(ROWS)
    with torch.no_grad():
        wanted = [embed(model, batch) for batch in batches]
    attach(model, gate)
    for step, (batch, target) in enumerate(zip(batches, wanted, strict=True)):
        gate.resample(0, step)  # the sample is a function of (seed, step): the example says the same every time
        optimiser.zero_grad()
        distance = (embed(model, batch) - target).square().sum(-1).mean()
        (distance + gate.penalty()).backward()
        optimiser.step()
        gate.after_step(step)
    detach(model)
    return gate.freeze(sparsity=SPARSITY)


def agreement(dense: torch.nn.Module, pattern: Pattern, ids: Tensor) -> float:
    """Mean cosine between the embeddings of the dense and the sparse model; 1 is the same direction."""
    with torch.no_grad():
        return float((embed(dense, ids) * embed(load_model("minilm", pattern=pattern).eval(), ids)).sum(-1).mean())


disable_progress_bar()
out = Path(sys.argv[1] if len(sys.argv) > 1 else "sparse-embeddings")
tokenizer = load_tokenizer("minilm")
dense = load_model("minilm").eval().requires_grad_(False)
ids = rows(tokenizer, LENGTH)
seen, unseen = ids[:-64], ids[-64:]
learned = find_pattern(dense, seen.repeat(STEPS * ROWS // len(seen) + 1, 1)[: STEPS * ROWS])
radius = next(one for one in range(1, LENGTH) if patterns.window(LENGTH, radius=one).sparsity <= learned.sparsity)

print("pattern         sparsity   cosine to the dense embeddings")
for name, pattern in (
    ("learned", learned),
    ("star", patterns.star(LENGTH)),
    ("window", patterns.window(LENGTH, radius=radius)),
    ("big_bird", patterns.big_bird(LENGTH, heads=12, seed=0)),
):
    print(f"{name:<14}  {pattern.sparsity:>7.1%}   {agreement(dense, pattern, unseen):.4f}")

load_model("minilm", pattern=learned).save_pretrained(out)
tokenizer.save(str(out / "tokenizer.json"))
print(f"the sparse model: {out}; AutoModel opens it after `import sparsebert`")
