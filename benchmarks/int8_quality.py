"""What do int8 layers cost in quality, dense and under patterns? Mean STS and the cosine of embeddings to float32.

    python benchmarks/int8_quality.py --data DATA
    python benchmarks/int8_quality.py --data DATA --models minilm:found/pattern.safetensors --precisions int8 bf16

DATA as for sentence_scores.py. A model is a name or a folder, with `:pattern` a pattern that it is run under (a file,
or window_border, which is made 90 % sparse). Texts are cut at 128 tokens. Each model is held against itself in float32:
mean of Spearman's correlation x 100 over STS-B dev and STS12 to STS15, and the cosine of a sentence's two embeddings.
"""

import argparse
from pathlib import Path

import numpy as np
import torch
from sentence_scores import LENGTH, sts_rows

from sparsebert import patterns
from sparsebert.embeddings import Encoder, SimilaritySets, scores_of_embeddings, texts_of
from sparsebert.embeddings.encoding import encode_texts
from sparsebert.patterns import Pattern


def opened(name: str, precision: str) -> Encoder:
    source, _, named = name.partition(":")
    pattern: Pattern | str | None = named or None
    if named == "window_border":
        pattern = patterns.window_border(LENGTH, sparsity=0.9)
    return Encoder(source, pattern=pattern, length=LENGTH, precision=precision)


def unit_vectors(encoder: Encoder, sentences: list[str]) -> np.ndarray:
    vectors = encode_texts(encoder, sentences).embeddings
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def scores_of(vectors: np.ndarray, sets: SimilaritySets) -> list[float]:
    """Of each set, from the embeddings of texts_of(sets)."""
    return list(scores_of_embeddings(lambda _: vectors, sets).values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--models", nargs="+", default=["minilm", "minilm:window_border"])
    parser.add_argument("--precisions", nargs="+", default=["int8"])
    parser.add_argument("--threads", type=int, default=1)
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    sets = sts_rows(asked.data)
    sentences = texts_of(sets)
    print(f"| model | precision | {' | '.join(sets)} | mean | against fp32 | cosine: mean, worst of 99 %, worst |")
    print("|" + "---|" * (len(sets) + 5))
    for name in asked.models:
        exact = unit_vectors(opened(name, "fp32"), sentences)
        wanted = scores_of(exact, sets)
        for precision in ("fp32", *asked.precisions):
            vectors = exact if precision == "fp32" else unit_vectors(opened(name, precision), sentences)
            scores = scores_of(vectors, sets)
            cosines = np.sort((vectors * exact).sum(1))
            low, lowest = cosines[len(cosines) // 100], cosines[0]
            print(
                f"| {name} | {precision} | {' | '.join(f'{score:.2f}' for score in scores)} | {np.mean(scores):.2f} | "
                f"{np.mean(scores) - np.mean(wanted):+.2f} | {cosines.mean():.4f}, {low:.4f}, {lowest:.4f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
