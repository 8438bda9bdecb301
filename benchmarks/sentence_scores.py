"""How good are a model's embeddings? STS by cosine, and whether a paragraph finds the next one of its article.

    python benchmarks/sentence_scores.py --data DATA minilm
    python benchmarks/sentence_scores.py --data DATA adapted minilm:found/pattern.safetensors --out scores.jsonl

DATA holds glue/STS-B/dev.tsv, sts/STS12.tsv to STS15.tsv and text/wikipedia.txt.gz. A model is a name or a folder, with
`:pattern` a pattern that it is run under. STS: Spearman's correlation x 100 of the cosine of embeddings with people's
scores. Paragraphs: of the first articles with two paragraphs of over 600 characters, how many first ones (cut at 128
tokens) have their own second one as the nearest of all, in percent. Distance: mean 1 - cosine to the dense model's
embeddings of the same paragraphs. One line of JSON a model; a model that --out has already is passed over.
"""

import argparse
import gzip
import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import spearmanr
from transformers import AutoTokenizer

from sparsebert import load_model
from sparsebert.model.head_pooling import pooled
from sparsebert.model.heads import give_pattern
from sparsebert.model.pooling import pooling_of
from sparsebert.model.sources import model_folder
from sparsebert.patterns import Pattern, find
from sparsebert.training.starting_points import source_of

LENGTH, BATCH, LEAST_CHARACTERS = 128, 64, 600


def sts_rows(data: Path) -> dict[str, list[tuple[float, str, str]]]:
    """Score and two sentences of every row of every set."""
    files = {"STS-B dev": (data / "glue/STS-B/dev.tsv", 9, 7)}
    files |= {f"STS{year}": (data / f"sts/STS{year}.tsv", 1, 2) for year in (12, 13, 14, 15)}
    return {name: list(_read(*where)) for name, where in files.items()}


def _read(path: Path, score: int, first: int) -> Iterator[tuple[float, str, str]]:
    for line in path.read_text(encoding="utf8").rstrip("\n").split("\n")[1:]:
        cells = line.split("\t")
        yield float(cells[score]), cells[first], cells[first + 1]


def paragraph_pairs(data: Path, count: int) -> list[tuple[str, str]]:
    """The first two long paragraphs of the first articles that have them."""
    with gzip.open(data / "text/wikipedia.txt.gz", "rt", encoding="utf8") as file:
        articles = file.read().split("\n\n")
    long = ([line for line in article.split("\n")[1:] if len(line) > LEAST_CHARACTERS] for article in articles)
    return [(lines[0], lines[1]) for lines in islice((lines for lines in long if len(lines) > 1), count)]


class Encoder:
    """A model that makes embeddings of texts."""

    def __init__(self, name: str, pattern: Pattern | None = None) -> None:
        """name: of a model; a pattern's name or file may follow behind a colon."""
        source, _, named = name.partition(":")
        self.model = load_model(source_of(source), "none").eval()
        self.pooling = pooling_of(source_of(source))
        self.tokenizer: Any = AutoTokenizer.from_pretrained(str(model_folder(source_of(source))))
        if named:
            pattern = find(named, LENGTH, int(self.model.config.num_attention_heads))
        if pattern is not None:
            give_pattern(self.model, pattern)

    @torch.no_grad()
    def embed(self, texts: list[str]) -> np.ndarray:
        """Unit vectors, batched by length."""
        order = sorted(range(len(texts)), key=lambda number: len(texts[number]))
        vectors = np.zeros((len(texts), int(self.model.config.hidden_size)), np.float32)
        for start in range(0, len(order), BATCH):
            chosen = order[start : start + BATCH]
            inputs = self.tokenizer(
                [texts[number] for number in chosen],
                padding=True,
                truncation=True,
                max_length=LENGTH,
                return_tensors="pt",
                return_token_type_ids=False,
            )
            states = self.model(**inputs)[0]
            made = pooled(states, inputs["attention_mask"].float(), self.pooling)
            vectors[chosen] = torch.nn.functional.normalize(made, dim=-1).numpy()
        return vectors


def sts_scores(encoder: Encoder, sets: dict[str, list[tuple[float, str, str]]]) -> dict[str, float]:
    scores = {}
    for name, rows in sets.items():
        texts = sorted({text for _, *pair in rows for text in pair})
        places = {text: number for number, text in enumerate(texts)}
        vectors = encoder.embed(texts)
        cosines = [float(vectors[places[one]] @ vectors[places[other]]) for _, one, other in rows]
        scores[name] = 100 * float(spearmanr(cosines, [score for score, _, _ in rows]).statistic)
    return scores


def scored(
    encoder: Encoder, sets: dict[str, list[tuple[float, str, str]]], pairs: list[tuple[str, str]], dense: np.ndarray
) -> dict[str, float]:
    """All figures of a model. dense: embeddings of all first paragraphs, then all second ones, by the dense model."""
    vectors = encoder.embed([text for texts in zip(*pairs, strict=True) for text in texts])
    found = (vectors[: len(pairs)] @ vectors[len(pairs) :].T).argmax(1) == np.arange(len(pairs))
    pattern = getattr(encoder.model, "pattern", None)
    return {
        "sparsity": 0.0 if pattern is None else pattern.sparsity,
        **sts_scores(encoder, sets),
        "paragraphs": 100 * float(found.mean()),
        "distance": 1.0 - float((vectors * dense).sum(1).mean()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--articles", type=int, default=1000)
    parser.add_argument("--dense", default="minilm", help="what embeddings are held against")
    parser.add_argument("--sts", choices=["all", "stsb", "none"], default="all")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    sets = sts_rows(asked.data) if asked.sts != "none" else {}
    sets = {name: rows for name, rows in sets.items() if asked.sts == "all" or name == "STS-B dev"}
    pairs = paragraph_pairs(asked.data, asked.articles)
    known = asked.out.read_text().splitlines() if asked.out and asked.out.exists() else []
    done = {json.loads(line)["model"] for line in known}
    dense = Encoder(asked.dense).embed([text for texts in zip(*pairs, strict=True) for text in texts])
    for name in asked.models:
        if name in done:
            continue
        line = {"model": name, **scored(Encoder(name), sets, pairs, dense)}
        print(json.dumps(line), flush=True)
        if asked.out:
            with asked.out.open("a") as file:
                file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
