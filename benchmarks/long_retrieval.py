"""Do embeddings of long texts find their summaries? One sparse pass over 4,096 tokens beside what a dense model can do.

    python benchmarks/long_retrieval.py --data DATA dense-256 dense-512 windows minilm:window_border@32 LONG
    python benchmarks/long_retrieval.py --cost LONG

DATA holds qmsum/documents.jsonl.gz and queries.jsonl.gz: transcripts of meetings, and summaries that each ask for one.
nDCG@10 by cosine, x 100. dense-N: minilm reads the first N tokens. windows: the mean of its embeddings of eight windows
of 512 tokens. Anything else is a model that reads 4,096 tokens at once: a name or a folder, such as `adapt --length
4096` leaves; its positions are tiled if it has fewer. Behind a colon a pattern to run it under: a file, or a builder's
name, and after @ a sparsity to pick from the file's ranking, or a number of keys a query for the builder. --cost: CPU
time of one forward over 4,096 tokens, dense and sparse in turn, one thread, products as in `encode`. One line of JSON
each; a method that --out has already is passed over.
"""

import argparse
import gzip
import json
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch

from sparsebert import Pattern, extend_positions, load_model, patterns, unsparsify
from sparsebert.embeddings import Encoder
from sparsebert.embeddings.encoder import Tokens
from sparsebert.layers import full_speed_products
from sparsebert.model.heads import pattern_of
from sparsebert.model.positions import positions_of
from sparsebert.model.precision import PRECISIONS
from sparsebert.training.starting_points import source_of

LENGTH, WINDOW, BATCH = 4096, 512, 32


def rows(path: Path) -> list[dict[str, str]]:
    with gzip.open(path, "rt", encoding="utf8") as file:
        return [json.loads(line) for line in file]


def chosen_pattern(words: str) -> Pattern:
    """FILE, FILE@0.8 (a sparsity of its ranking), or BUILDER@32 (keys a query at 4,096 tokens)."""
    name, _, budget = words.partition("@")
    if Path(name).is_file():
        found = Pattern.load(Path(name))
        return found.at_sparsity(float(budget)) if budget else found
    return patterns.window_border(LENGTH, keys=float(budget)) if budget else patterns.named(name, LENGTH, 12)


def long_encoder(name: str, precision: str) -> Encoder:
    source, _, pattern = name.partition(":")
    encoder = Encoder(source, pattern=chosen_pattern(pattern) if pattern else None, precision=precision)
    if positions_of(encoder.model) < LENGTH:
        extend_positions(encoder.model, LENGTH)
    encoder.length = LENGTH
    return encoder


def embed(encoder: Encoder, read: list[Tokens], size: int = BATCH) -> np.ndarray:
    """Unit vectors, batched by length."""
    order = sorted(range(len(read)), key=lambda number: len(read[number].ids))
    made = np.zeros((len(read), encoder.width), np.float32)
    for start in range(0, len(order), size):
        places = order[start : start + size]
        made[places] = np.concatenate(encoder.embeddings([read[place] for place in places]))
    return made / np.linalg.norm(made, axis=1, keepdims=True)


def window_means(encoder: Encoder, texts: list[str]) -> np.ndarray:
    """The mean of the embeddings of windows over the first 4,096 tokens, each between [CLS] and [SEP]."""
    first, last = encoder.tokenizer.cls_token_id, encoder.tokenizer.sep_token_id
    inner, made = WINDOW - 2, []
    for text in texts:
        most = {"truncation": True, "max_length": LENGTH // WINDOW * inner}
        ids = encoder.tokenizer(text, add_special_tokens=False, **most)["input_ids"]
        cut = [Tokens([first, *ids[start : start + inner], last], False, []) for start in range(0, len(ids), inner)]
        made.append(embed(encoder, cut).mean(0))
    return np.stack(made)


def ndcg(queries: np.ndarray, documents: np.ndarray, wanted: list[int]) -> float:
    """At 10, x 100; each query asks for one document."""
    scores = queries @ (documents / np.linalg.norm(documents, axis=1, keepdims=True)).T
    own = scores[np.arange(len(wanted)), wanted]
    ranks = (scores > own[:, None]).sum(1)
    return 100 * float(np.where(ranks < 10, 1 / np.log2(ranks + 2), 0).mean())


def scored(name: str, data: Path, precision: str) -> dict[str, Any]:
    documents, queries = (rows(data / f"qmsum/{what}.jsonl.gz") for what in ("documents", "queries"))
    places = {one["id"]: place for place, one in enumerate(documents)}
    texts = [one["text"] for one in documents]
    pattern = None
    if name == "windows" or name.startswith("dense-"):
        length = WINDOW if name == "windows" else int(name.removeprefix("dense-"))
        encoder = Encoder("minilm", length=length, precision=precision)
    else:
        encoder = long_encoder(name, precision)
        pattern = pattern_of(encoder.model)
    before = time.process_time()
    made = window_means(encoder, texts) if name == "windows" else embed(encoder, encoder.tokens(texts), 1)
    seconds = time.process_time() - before
    asked = embed(encoder, encoder.tokens([one["text"] for one in queries]))
    found = {"method": name, "ndcg": ndcg(asked, made, [places[one["document"]] for one in queries])}
    if pattern is not None:
        sparsity = pattern.at(LENGTH).sparsity
        found |= {"sparsity": sparsity, "keys": (1 - sparsity) * LENGTH}
    return found | {"cpu_seconds": round(seconds)}


@torch.inference_mode()
@full_speed_products()
def cost(name: str, precision: str, repeats: int) -> dict[str, Any]:
    """CPU time of a forward over one row, dense and sparse in turn."""
    sparse = long_encoder(name, precision).model
    dense = unsparsify(load_model(source_of(name.partition(":")[0]), "none").eval())
    if positions_of(dense) < LENGTH:
        extend_positions(dense, LENGTH)
    models = {"dense": PRECISIONS[precision](dense), "sparse": sparse}
    ids = torch.randint(1000, 30000, (1, LENGTH), generator=torch.Generator().manual_seed(0))
    times: dict[str, list[float]] = {one: [] for one in models}
    for number in range(repeats + 1):
        for one, model in models.items():
            before = time.process_time()
            model(ids)
            if number:  # the first of each is no measurement
                times[one].append(time.process_time() - before)
    found = {one: median(taken) for one, taken in times.items()}
    return {"model": name, "precision": precision, **found, "times_as_fast": found["dense"] / found["sparse"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("methods", nargs="+")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--cost", action="store_true")
    parser.add_argument("--precision", choices=list(PRECISIONS), default="fp32")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    if asked.data is None and not asked.cost:
        parser.error("name --data, or ask for --cost")
    torch.set_num_threads(asked.threads)
    known = asked.out.read_text().splitlines() if asked.out and asked.out.exists() else []
    done = {json.loads(line).get("method") for line in known}
    for name in asked.methods:
        if name in done and not asked.cost:
            continue
        line = cost(name, asked.precision, asked.repeats) if asked.cost else scored(name, asked.data, asked.precision)
        print(json.dumps(line), flush=True)
        if asked.out:
            with asked.out.open("a") as file:
                file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
