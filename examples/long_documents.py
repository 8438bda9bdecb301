"""Embed long documents in one pass: 2,048 tokens at once, where minilm ends at 512.

    python examples/long_documents.py [FOLDER]

The table of positions is repeated, the pattern rebuilt at the longer length by its rule, and attention costs what the
pattern keeps. Prints what that costs beside dense attention; how good such embeddings are is another question
(docs/results/long-inputs.md).
"""

import sys
import time
from pathlib import Path

import numpy as np
import torch
from texts import documents, embed

from sparsebert import extend_positions, load_model, patterns
from sparsebert.text import load_tokenizer

LENGTH = 2048

out = Path(sys.argv[1] if len(sys.argv) > 1 else "long-documents")
tokenizer = load_tokenizer("minilm")
encoded = tokenizer.encode("\n".join(documents()), add_special_tokens=False).ids
cls, sep = tokenizer.token_to_id("[CLS]"), tokenizer.token_to_id("[SEP]")
pieces = [encoded[start : start + LENGTH - 2] for start in range(0, 2 * (LENGTH - 2), LENGTH - 2)]
ids = torch.tensor([[cls, *piece, sep] for piece in pieces])

pattern = patterns.window(128, radius=8) | patterns.border(128)  # a rule, learned or thought up at 128 tokens
sparse = extend_positions(load_model("minilm").eval(), LENGTH).set_pattern(pattern.at(LENGTH))
dense = extend_positions(load_model("minilm").eval(), LENGTH)
print(f"{LENGTH} tokens, {sparse.pattern.sparsity:.1%} of the positions left out")

embeddings = {}
with torch.no_grad():
    for name, model in (("dense", dense), ("sparse", sparse)):
        embed(model, ids[:1])  # once for what is built on first use
        start = time.process_time()
        embeddings[name] = embed(model, ids)
        print(f"{name:<7} {ids.numel() / (time.process_time() - start):>8,.0f} tokens a second of CPU time")
print(f"cosine of sparse and dense: {(embeddings['dense'] * embeddings['sparse']).sum(-1).mean():.3f}")

out.mkdir(parents=True, exist_ok=True)
np.save(out / "embeddings.npy", embeddings["sparse"].numpy())
print(f"{len(ids)} embeddings: {out / 'embeddings.npy'}")
