"""Bring my own pattern: from a list of distances, from a table of yes and no, or as a rule that works at any length.

python examples/own_pattern.py [FOLDER]
"""

import sys
from pathlib import Path

import torch
from texts import embed, rows

from sparsebert import Pattern, load_model, patterns
from sparsebert.patterns.builders import at_least, same_heads
from sparsebert.patterns.entries import Entries, offset_entries, union
from sparsebert.patterns.figures import head_grid, save_figure
from sparsebert.patterns.rules import BUILDERS
from sparsebert.text import load_tokenizer

LENGTH = 64
out = Path(sys.argv[1] if len(sys.argv) > 1 else "own-pattern")
out.mkdir(parents=True, exist_ok=True)

# 1. Distances: every head sees its neighbours, half of the heads far ones too. border: first and last token see all.
near_and_far = patterns.from_offsets(length=LENGTH, offsets=[[-1, 0, 1]] * 6 + [[-16, -8, 0, 8, 16]] * 6, border=True)

# 2. A table: tokens see their own sentence of 16, and the first token of every sentence.
sentence = torch.arange(LENGTH) // 16
keep = (sentence[:, None] == sentence) | (torch.arange(LENGTH) % 16 == 0)
sentences = patterns.from_keep(keep.expand(12, -1, -1))


# 3. A rule: a function from a length to a pattern. In the table of builders it can be rebuilt, and read from a file.
def powers(length: int, heads: int = 1, *, base: int = 2) -> Pattern:
    """Oneself, and tokens at distances 1, base, base², … to both sides."""
    at_least("powers", "base", base, 2)
    reach = [0, *(base**step for step in range(length.bit_length()) if base**step < length)]

    def entries() -> Entries:
        return union(offset_entries(length, sign * distance) for distance in reach for sign in (-1, 1))

    return same_heads("powers", length, heads, entries, base=base)


BUILDERS["powers"] = powers

# Patterns combine, and are drawn, saved and read alike.
mine = powers(LENGTH, heads=12, base=3) | patterns.border(LENGTH, heads=12)
mine.save(out / "pattern.safetensors")
assert Pattern.load(out / "pattern.safetensors") == mine
print(powers(16).picture())
print(f"at {LENGTH} tokens {mine.sparsity:.1%} sparse, at 4096 by the same rule {mine.at(4096).sparsity:.2%}\n")
save_figure(head_grid(near_and_far, "near and far"), out / "near-and-far.png")

ids = rows(load_tokenizer("minilm"), LENGTH)[:16]
with torch.no_grad():
    dense = embed(load_model("minilm").eval(), ids)
    for name, pattern in (("near and far", near_and_far), ("sentences", sentences), ("powers", mine)):
        sparse = embed(load_model("minilm", pattern=pattern).eval(), ids)
        cosine = (dense * sparse).sum(-1).mean()
        print(f"{name:<13} {pattern.sparsity:>6.1%} sparse, cosine to dense embeddings {cosine:.3f}")
