"""Pre-training batches: each one a pure function of (corpus, settings, seed, step)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Int64
from numpy import ndarray
from torch import Tensor

from sparsebert.batches.corruption import Corruption, max_predictions
from sparsebert.batches.pairs import Pair, draw_pair
from sparsebert.batches.rows import RowBatches, TextBatch
from sparsebert.draws import generator
from sparsebert.text import TokenStore


@dataclass(frozen=True)
class PretrainingBatch(TextBatch):
    """What a model sees, corrupted, and what it is asked."""

    predicted_positions: Int64[Tensor, " predicted"]  # flat, into rows * n, ascending
    predicted_ids: Int64[Tensor, " predicted"]  # the tokens that stood there
    next_sentence: Int64[Tensor, " rows"]  # 0: B follows A; 1: B is from another document


@dataclass(frozen=True)
class _CorruptedRow:
    tokens: Int64[ndarray, " tokens"]
    corrupted: Int64[ndarray, " tokens"]
    positions: Int64[ndarray, " predicted"]
    num_first: int  # tokens of [CLS] A [SEP]
    is_random: bool


class PretrainingBatches(RowBatches[_CorruptedRow, PretrainingBatch]):
    """Masked language modelling and next-sentence prediction over a token store."""

    def __init__(self, store: TokenStore, *, length: int, whole_words: bool = False, **sizes: Any) -> None:
        """length: tokens in a row, padding included. whole_words: corrupt all pieces of a word or none."""
        super().__init__(store, length=length, **sizes)
        self._corruption = Corruption.of(store, whole_words=whole_words)
        self._limit = max_predictions(length)

    def pair(self, step: int, row: int) -> Pair:
        """The segments of one row of the global batch, before corruption; names their documents."""
        return draw_pair(self.places, self.length, generator(self.seed, f"pairs/{self.split}", step, row))

    def row(self, step: int, row: int) -> _CorruptedRow:
        pair = self.pair(step, row)
        special = self.store.special
        tokens = np.concatenate([[special.cls], pair.first, [special.sep], pair.second, [special.sep]]).astype(np.int64)
        draw = generator(self.seed, f"corruption/{self.split}", step, row)
        corrupted, positions = self._corruption.apply(tokens, self._limit, draw)
        return _CorruptedRow(tokens, corrupted, positions, len(pair.first) + 2, pair.is_random)

    def collate(self, rows: list[_CorruptedRow]) -> PretrainingBatch:
        shape = (len(rows), self.length)
        input_ids = np.full(shape, self.store.special.pad, dtype=np.int64)
        token_type_ids = np.zeros(shape, dtype=np.int64)
        for number, row in enumerate(rows):
            input_ids[number, : len(row.tokens)] = row.corrupted
            token_type_ids[number, row.num_first : len(row.tokens)] = 1
        flat = [number * self.length + row.positions for number, row in enumerate(rows)]
        return PretrainingBatch(
            input_ids=torch.from_numpy(input_ids),
            token_type_ids=torch.from_numpy(token_type_ids),
            lengths=torch.tensor([len(row.tokens) for row in rows], dtype=torch.int64),
            predicted_positions=torch.from_numpy(np.concatenate(flat).astype(np.int64)),
            predicted_ids=torch.from_numpy(np.concatenate([row.tokens[row.positions] for row in rows])),
            next_sentence=torch.tensor([int(row.is_random) for row in rows], dtype=torch.int64),
        )
