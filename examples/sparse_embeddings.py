"""Sparsify a sentence-transformers model: minilm teaches itself which attention it needs, and its weights stay.

    python examples/sparse_embeddings.py [FOLDER]

What `sparsebert prepare` and `sparsebert search` do, from Python, and shorter: half of attention goes within a minute.
The table says at what loss, on text not learned from. 240 steps of 16 x 128 tokens do without nine tenths of it.
"""

import sys
from pathlib import Path

from sentence_transformers import SentenceTransformer
from transformers.utils.logging import disable_progress_bar

from sparsebert import Pattern, compare, load_model, patterns
from sparsebert.runs import SearchRun
from sparsebert.text import prepare_corpus

STEPS, ROWS, LENGTH, SPARSITY = 60, 8, 64, 0.5

disable_progress_bar()
out = Path(sys.argv[1] if len(sys.argv) > 1 else "sparse-embeddings")
corpus, found = out / "corpus", out / "found"
prepare_corpus(["builtin:python-docs"], corpus, model="minilm", workers=1)  # your own: a .txt or .jsonl file
SearchRun(model="minilm", corpus=corpus, length=LENGTH, batch_size=ROWS, steps=STEPS, sparsity=SPARSITY).make(found)

learned = Pattern.load(found / "pattern.safetensors")
radius = next(one for one in range(1, LENGTH) if patterns.window(LENGTH, radius=one).sparsity <= learned.sparsity)
dense = load_model("minilm")
print("pattern     sparsity   keys a query   cosine to the dense embeddings")
for name, pattern in (
    ("learned", learned),
    ("window", patterns.window(LENGTH, radius=radius)),
    ("star", patterns.star(LENGTH)),
):
    made = compare(dense, load_model("minilm", pattern=pattern), corpus, rows=64, length=LENGTH)
    print(f"{name:<10}  {pattern.sparsity:>7.1%}   {pattern.keys_per_query:>12.1f}   {made.embedding_cosine:.4f}")

model = SentenceTransformer(str(found / "model"), device="cpu")  # in any process, after `import sparsebert`
assert model.pattern == learned
question, *answers = model.encode(["Where do rivers end?", "They run to the sea.", "The committee adjourned."])
print("Where do rivers end?", [round(float(question @ answer), 2) for answer in answers])
print(f"the sparse model: {found / 'model'}, and what it keeps: {found / 'model' / 'README.md'}")
