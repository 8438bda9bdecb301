"""Two segments for next-sentence prediction, as in BERT.

A start is drawn uniformly over the tokens of the split: the sentence around it opens segment A. Sentences follow until
the row is full; a drawn cut divides them into A and B. Half of the time B is replaced by text from another document.
Departures from BERT's script: a start is never the last sentence of its document, so that a true next one exists and
exactly half of the rows are true; and B comes from a document that cannot be the same text.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import UInt
from numpy import ndarray

from sparsebert.batches.sentence_places import SentencePlaces

SHORT_ROWS = 0.1  # share of the rows that aim at fewer tokens than fit
RANDOM_NEXT = 0.5  # share of the rows whose B is from another document
NUM_SPECIAL = 3  # [CLS] A [SEP] B [SEP]


@dataclass(frozen=True)
class Pair:
    """Two segments, not yet corrupted, that fit in a row together."""

    first: UInt[ndarray, " first"]
    second: UInt[ndarray, " second"]
    is_random: bool
    documents: tuple[tuple[int, int], tuple[int, int]]  # (shard, document) of each segment


def draw_pair(places: SentencePlaces, length: int, draw: np.random.Generator) -> Pair:
    """One pair for a row of `length` tokens."""
    room = length - NUM_SPECIAL
    target = int(draw.integers(2, room + 1)) if draw.random() < SHORT_ROWS else room
    is_random = bool(draw.random() < RANDOM_NEXT)
    here = places.draw(draw)
    start = max(min(here.sentence, here.last_sentence - 1), here.first_sentence)
    starts = here.tokens_from(start, target, least=2)
    num_sentences = len(starts) - 1
    # A document of one sentence has no next one: its row is a random pair.
    is_random = is_random or num_sentences < 2
    cut = 1 + int(draw.integers(max(num_sentences - 1, 1)))
    first = here.shard.ids[starts[0] : starts[cut]]
    second, there = here.shard.ids[starts[cut] : starts[-1]], here
    if is_random:
        there = places.draw_elsewhere(draw, here)
        other = there.tokens_from(there.sentence, max(target - len(first), 1), least=1)
        second = there.shard.ids[other[0] : other[-1]]
    first, second = truncate(first, second, room, draw)
    return Pair(first, second, is_random, (here.document, there.document))


def truncate(
    first: UInt[ndarray, " first"], second: UInt[ndarray, " second"], room: int, draw: np.random.Generator
) -> tuple[UInt[ndarray, " kept_first"], UInt[ndarray, " kept_second"]]:
    """Longest first, each token off the front or the back with equal chance, as BERT's loop does one by one."""
    kept_first, kept_second = kept(len(first), len(second), room)
    return _trim(first, kept_first, draw), _trim(second, kept_second, draw)


def kept(first: int, second: int, room: int) -> tuple[int, int]:
    """How many tokens of each segment stay when the longer one (the second, if equal) always gives up one."""
    if first + second <= room:
        return first, second
    half = room - room // 2  # the larger half goes to the first
    if first <= half:
        return first, room - first
    if second <= room // 2:
        return room - second, second
    return half, room // 2


def _trim(tokens: UInt[ndarray, " tokens"], size: int, draw: np.random.Generator) -> UInt[ndarray, " size"]:
    front = int(draw.binomial(len(tokens) - size, 0.5))
    return tokens[front : front + size]
