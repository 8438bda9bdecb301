"""Late chunking: every stretch of a text gets an embedding of its own, made of states that have seen the whole text."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Float


@dataclass(frozen=True)
class Chunk:
    """A stretch of a text."""

    start: int  # character of the text
    end: int  # the one after its last
    tokens: int
    embedding: Float[np.ndarray, " width"]


@dataclass(frozen=True)
class Span:
    """Where a chunk lies among the tokens, and among the characters."""

    first: int  # token
    last: int  # the one after its last
    start: int  # character
    end: int


def spans(offsets: list[tuple[int, int]], is_special: list[int], size: int) -> list[Span]:
    """A text's tokens in chunks of `size`. What the tokenizer put before and after the text goes with the first and
    the last chunk, so that a text of one chunk has the embedding of the whole."""
    inner = [place for place, special in enumerate(is_special) if not special]
    if not inner:
        return [Span(0, len(is_special), 0, 0)]
    edges = [0, *(inner[at] for at in range(size, len(inner), size)), len(is_special)]
    made = []
    for number, (first, last) in enumerate(pairwise(edges)):
        own = inner[number * size : (number + 1) * size]
        made.append(Span(first, last, offsets[own[0]][0], offsets[own[-1]][1]))
    return made
