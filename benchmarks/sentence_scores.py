"""How good are a model's embeddings? STS by cosine, and whether a paragraph finds the next one of its article.

    python benchmarks/sentence_scores.py --data DATA minilm
    python benchmarks/sentence_scores.py --data DATA adapted minilm:found/pattern.safetensors --out scores.jsonl

DATA holds glue/STS-B/dev.tsv, sts/STS12.tsv to STS15.tsv and text/wikipedia.txt.gz. A model is a name or a folder, with
`:pattern` a pattern that it is run under. STS: Spearman's correlation x 100 of the cosine of embeddings with people's
scores. Paragraphs: of the first 2,000 articles with two paragraphs of over 600 characters, in sets of 1,000, how many
first ones (cut at 128 tokens) have their own second one as the nearest of the set, in percent; sets differ by several
points. Distance: mean 1 - cosine to the dense model's embeddings of the same paragraphs. One line of JSON a model; a
model that --out has already is passed over.

    python benchmarks/sentence_scores.py --data DATA --rest later-articles.txt

writes the articles behind those to a file: what is to be asked about them must be trained on others.

    python benchmarks/sentence_scores.py --data DATA --halves 300 --articles 0 minilm:found/pattern.safetensors

Halves: the first 2,700 characters of an article must find the next 2,700 of it among those of all, at 512 tokens.
"""

import argparse
import gzip
import json
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from sparsebert.embeddings import Encoder, SimilaritySets, read_similarity, similarity_files, similarity_scores
from sparsebert.embeddings.encoding import encode_texts
from sparsebert.patterns import Pattern

LENGTH, LEAST_CHARACTERS = 128, 600
ARTICLES, SET = 2_000, 1_000  # that are asked about; among how many a paragraph is looked for
HALVES_LENGTH, HALF_CHARACTERS = 512, 2_700


def sts_rows(data: Path) -> SimilaritySets:
    """The five sets, each with all of its rows."""
    files = {"STS-B dev": data / "glue/STS-B/dev.tsv", **similarity_files(data / "sts")}
    return {name: read_similarity(path) for name, path in files.items()}


@lru_cache(maxsize=1)
def articles_of(data: Path) -> list[str]:
    """Each with its title in its first line."""
    with gzip.open(data / "text/wikipedia.txt.gz", "rt", encoding="utf8") as file:
        return file.read().split("\n\n")


def half_pairs(data: Path, count: int) -> list[tuple[str, str]]:
    """The first two equal pieces of the first articles that are long enough."""
    bodies = (article.partition("\n")[2] for article in articles_of(data))
    long = islice((body for body in bodies if len(body) >= 2 * HALF_CHARACTERS), count)
    return [(body[:HALF_CHARACTERS], body[HALF_CHARACTERS : 2 * HALF_CHARACTERS]) for body in long]


def paragraph_pairs(data: Path, count: int) -> list[tuple[str, str]]:
    """The first two long paragraphs of the first articles that have them."""
    long = (long_lines(article) for article in articles_of(data))
    return [(lines[0], lines[1]) for lines in islice((lines for lines in long if len(lines) > 1), count)]


def long_lines(article: str) -> list[str]:
    """Without the title."""
    return [line for line in article.split("\n")[1:] if len(line) > LEAST_CHARACTERS]


def write_rest(data: Path, count: int, path: Path) -> None:
    """All articles behind those whose paragraphs are asked about."""
    articles = articles_of(data)
    asked = [number for number, article in enumerate(articles) if len(long_lines(article)) > 1][:count]
    path.write_text("\n\n".join(articles[asked[-1] + 1 :]) + "\n", encoding="utf8")


def encoder_of(name: str, pattern: Pattern | None = None, length: int = LENGTH) -> Encoder:
    """name: of a model; a pattern's name or file may follow behind a colon."""
    source, _, named = name.partition(":")
    return Encoder(source, pattern=named or pattern, length=length)


def embed(encoder: Encoder, pairs: list[tuple[str, str]]) -> np.ndarray:
    """Unit vectors of all first texts, then of all second ones."""
    vectors = encode_texts(encoder, [text for texts in zip(*pairs, strict=True) for text in texts]).embeddings
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def scored(encoder: Encoder, sets: SimilaritySets, pairs: list[tuple[str, str]], dense: np.ndarray) -> dict[str, float]:
    """All figures of a model. dense: embeddings of all first paragraphs, then all second ones, by the dense model."""
    pattern = getattr(encoder.model, "pattern", None)
    found, distance = retrieved(encoder, pairs, dense, SET)
    return {
        "sparsity": 0.0 if pattern is None else pattern.sparsity,
        **similarity_scores(encoder, sets),
        "paragraphs": float(np.mean(found)),
        **{f"paragraphs of set {number}": share for number, share in enumerate(found, 1)},
        "distance": distance,
    }


def retrieved(
    encoder: Encoder, pairs: list[tuple[str, str]], dense: np.ndarray, among: int
) -> tuple[list[float], float]:
    """How many first texts find their second one among those of their set, in percent, of every set of so many pairs.

    And how far all texts are from the dense model's.
    """
    vectors = embed(encoder, pairs)
    firsts, seconds = vectors[: len(pairs)], vectors[len(pairs) :]
    found = []
    for start in range(0, len(pairs), among):
        likeness = firsts[start : start + among] @ seconds[start : start + among].T
        found.append(100 * float((likeness.argmax(1) == np.arange(len(likeness))).mean()))
    return found, 1.0 - float((vectors * dense).sum(1).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--articles", type=int, default=ARTICLES, help="of paragraphs; 0: none")
    parser.add_argument("--rest", type=Path, help="write the articles behind them to this file")
    parser.add_argument("--halves", type=int, default=0, help="articles, to be cut in two")
    parser.add_argument("--dense", default="minilm", help="what embeddings are held against")
    parser.add_argument("--sts", choices=["all", "stsb", "none"], default="all")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    if asked.rest:
        write_rest(asked.data, asked.articles, asked.rest)
    if not asked.models:
        return
    sets = sts_rows(asked.data) if asked.sts != "none" else {}
    sets = {name: rows for name, rows in sets.items() if asked.sts == "all" or name == "STS-B dev"}
    pairs = paragraph_pairs(asked.data, asked.articles)
    known = asked.out.read_text().splitlines() if asked.out and asked.out.exists() else []
    done = {json.loads(line)["model"] for line in known}
    dense = embed(encoder_of(asked.dense), pairs) if pairs else None
    halves = half_pairs(asked.data, asked.halves)
    dense_halves = embed(encoder_of(asked.dense, length=HALVES_LENGTH), halves) if halves else None
    for name in asked.models:
        if name in done:
            continue
        line: dict[str, Any] = {"model": name}
        if dense is not None:
            line |= scored(encoder_of(name), sets, pairs, dense)
        if dense_halves is not None:
            encoder = encoder_of(name, length=HALVES_LENGTH)
            found, distance = retrieved(encoder, halves, dense_halves, len(halves))
            line |= {"halves": found[0], "halves cosine": 1.0 - distance}
        print(json.dumps(line), flush=True)
        if asked.out:
            with asked.out.open("a") as file:
                file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
