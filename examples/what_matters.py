"""Look at what matters in my model: which positions of the attention matrix do its embeddings need?

    python examples/what_matters.py [FOLDER]

A soft gate holds a value in [0, 1] for every position of every head. All begin half open, which spoils the embeddings.
The weights stay as they are, and the gate learns to bring the embeddings back: what it opens first and widest matters.
"""

import sys
from pathlib import Path

import torch
from texts import embed, rows

from sparsebert import attach, detach, gates, load_model
from sparsebert.importance.categories import tabulate
from sparsebert.importance.figures import importance_figure
from sparsebert.importance.saved import importance_of
from sparsebert.patterns.figures import save_figure
from sparsebert.text import load_tokenizer

STEPS, ROWS, LENGTH = 40, 8, 32

out = Path(sys.argv[1] if len(sys.argv) > 1 else "what-matters")
model = load_model("minilm").eval().requires_grad_(False)
batches = rows(load_tokenizer("minilm"), LENGTH)[: STEPS * ROWS].split(ROWS)
wanted = [embed(model, batch) for batch in batches]

# multiplicative: a weight times P is not shared out anew, so that half open everywhere is not as good as open.
gate = gates.Soft(length=LENGTH, heads=12, steps=STEPS, relaxation="multiplicative")
optimiser = torch.optim.AdamW(gate.parameters(), lr=0.05, weight_decay=0.0)
attach(model, gate)
for step, (batch, target) in enumerate(zip(batches, wanted, strict=True)):
    distance = (embed(model, batch) - target).square().sum(-1).mean()
    optimiser.zero_grad()
    distance.backward()
    optimiser.step()
    gate.after_step(step)
    if step % 10 == 0:
        print(f"step {step}: squared distance {distance.item():.4f}, mean of P {gate.values().mean().item():.3f}")
detach(model)

importance = importance_of(gate)
table = tabulate(importance, 0)
print(f"\n{table.as_text()}\n\n{table.verdict()}")
out.mkdir(parents=True, exist_ok=True)
save_figure(
    importance_figure(importance, f"what minilm's embeddings need, after {STEPS} steps"), out / "importance.png"
)
print(f"the picture: {out / 'importance.png'}")
