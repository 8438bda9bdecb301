"""Corruption for masked language modelling: 15 % of the tokens, of which 80 % become [MASK], 10 % another token."""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int64
from numpy import ndarray

from sparsebert.text import CONTINUATION, TokenStore

SHARE = 0.15  # of the candidates: every token of a row but the five special ones, of which [UNK] is one
TO_MASK = 0.8
TO_RANDOM = 0.1  # the rest, another tenth, is predicted but left as it is


def max_predictions(length: int) -> int:
    """The most predictions a row may have: 20 for 128 tokens and 77 for 512, as in BERT."""
    return math.ceil(SHARE * length)


@dataclass(frozen=True)
class Corruption:
    """The tables that corrupting needs, made once per vocabulary."""

    is_special: Bool[ndarray, " vocab"]
    continues: Bool[ndarray, " vocab"] | None  # pieces inside a word; None corrupts pieces one by one
    ordinary: Int64[ndarray, " ordinary"]  # what a token may be replaced with
    mask_id: int

    @classmethod
    def of(cls, store: TokenStore, *, whole_words: bool) -> "Corruption":
        is_special = np.zeros(store.vocab_size, dtype=bool)
        is_special[list(store.special.all())] = True
        continues = np.array([token.startswith(CONTINUATION) for token in store.tokens()]) if whole_words else None
        return cls(is_special, continues, np.flatnonzero(~is_special), store.special.mask)

    def apply(
        self, tokens: Int64[ndarray, " tokens"], limit: int, draw: np.random.Generator
    ) -> tuple[Int64[ndarray, " tokens"], Int64[ndarray, " predicted"]]:
        """The corrupted row, and the positions to predict in ascending order; none where there is no candidate."""
        candidates = np.flatnonzero(~self.is_special[tokens])
        wanted = min(limit, max(1, round(SHARE * len(candidates))), len(candidates))
        positions = self._choose(tokens, candidates, wanted, draw)
        kind = draw.random(len(positions))
        other = self.ordinary[draw.integers(len(self.ordinary), size=len(positions))]
        replaced = np.where(kind < TO_MASK + TO_RANDOM, other, tokens[positions])
        corrupted = tokens.copy()
        corrupted[positions] = np.where(kind < TO_MASK, self.mask_id, replaced)
        return corrupted, positions

    def _choose(
        self,
        tokens: Int64[ndarray, " tokens"],
        candidates: Int64[ndarray, " c"],
        wanted: int,
        draw: np.random.Generator,
    ) -> Int64[ndarray, " predicted"]:
        if self.continues is None:
            return np.sort(draw.permutation(candidates)[:wanted])
        chosen: list[int] = []
        words = self._words(tokens, candidates)
        for number in draw.permutation(len(words)):
            # A word that would exceed the number is passed over for a shorter one, as in BERT.
            if len(chosen) + len(words[number]) <= wanted:
                chosen.extend(words[number])
            if len(chosen) == wanted:
                break
        return np.sort(np.array(chosen, dtype=np.int64))

    def _words(self, tokens: Int64[ndarray, " tokens"], candidates: Int64[ndarray, " c"]) -> list[Int64[ndarray, " w"]]:
        """The positions of each word; a piece whose beginning was cut off or is special starts a word of its own."""
        assert self.continues is not None
        follows = np.diff(candidates, prepend=-2) == 1
        begins = np.flatnonzero(~(self.continues[tokens[candidates]] & follows))
        return np.split(candidates, begins[1:]) if len(candidates) else []
