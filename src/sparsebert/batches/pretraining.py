"""Pre-training batches: each one a pure function of (corpus, settings, seed, step)."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int64
from numpy import ndarray
from torch import Tensor

from sparsebert.batches.corruption import Corruption, max_predictions
from sparsebert.batches.pairs import NUM_SPECIAL, Pair, draw_pair
from sparsebert.batches.sentence_places import SentencePlaces
from sparsebert.draws import generator
from sparsebert.errors import ConfigError
from sparsebert.text import SPLITS, Split, TokenStore

_MIN_LENGTH = NUM_SPECIAL + 2  # one token a segment


@dataclass(frozen=True)
class PretrainingBatch:
    """What a model sees (input_ids, token_type_ids, lengths) and what it is asked (the rest)."""

    input_ids: Int64[Tensor, "rows n"]  # corrupted; [PAD] beyond each length
    token_type_ids: Int64[Tensor, "rows n"]  # 0 for [CLS] A [SEP], 1 for B [SEP], 0 for padding
    lengths: Int64[Tensor, " rows"]  # real tokens in each row
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


class PretrainingBatches:
    """Masked language modelling and next-sentence prediction over a token store.

    The global batch of a step has `batch_size` rows; rank r of R makes rows r * batch_size / R and on. Every draw is
    keyed by (seed, stream, step, row in the global batch), so the rows do not depend on who makes them, or when.
    """

    def __init__(
        self,
        store: TokenStore,
        *,
        batch_size: int,  # rows of all ranks together
        length: int,  # tokens in a row, padding included
        seed: int,
        split: Split = "train",
        rank: int = 0,
        ranks: int = 1,
        whole_words: bool = False,  # corrupt all pieces of a word or none
    ) -> None:
        _require_settings(batch_size, length, split, rank, ranks)
        self.store, self.length, self.seed, self.split = store, length, seed, split
        self.num_rows = batch_size // ranks
        self.first_row = rank * self.num_rows
        self._places = SentencePlaces(store, split)
        self._corruption = Corruption.of(store, whole_words=whole_words)
        self._limit = max_predictions(length)

    def pair(self, step: int, row: int) -> Pair:
        """The segments of one row of the global batch, before corruption; names their documents."""
        return draw_pair(self._places, self.length, generator(self.seed, f"pairs/{self.split}", step, row))

    def batch(self, step: int) -> PretrainingBatch:
        """This rank's rows of the batch of a step; needs no other step to have been made."""
        if step < 0:
            raise ConfigError(f"step {step} does not exist; steps count from 0")
        return self._collate([self._row(step, self.first_row + row) for row in range(self.num_rows)])

    def _row(self, step: int, row: int) -> _CorruptedRow:
        pair = self.pair(step, row)
        special = self.store.special
        tokens = np.concatenate([[special.cls], pair.first, [special.sep], pair.second, [special.sep]]).astype(np.int64)
        draw = generator(self.seed, f"corruption/{self.split}", step, row)
        corrupted, positions = self._corruption.apply(tokens, self._limit, draw)
        return _CorruptedRow(tokens, corrupted, positions, len(pair.first) + 2, pair.is_random)

    def _collate(self, rows: list[_CorruptedRow]) -> PretrainingBatch:
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


def _require_settings(batch_size: int, length: int, split: str, rank: int, ranks: int) -> None:
    if length < _MIN_LENGTH:
        raise ConfigError(f"rows of {length} tokens cannot hold a pair; expected a length of at least {_MIN_LENGTH}")
    if split not in SPLITS:
        raise ConfigError(f"there is no split called {split}; expected {' or '.join(SPLITS)}")
    if ranks < 1 or not 0 <= rank < ranks:
        raise ConfigError(f"rank {rank} of {ranks} does not exist; expected 0 <= rank < ranks")
    if batch_size < 1 or batch_size % ranks:
        raise ConfigError(
            f"a batch of {batch_size} rows cannot be cut into {ranks} equal parts; choose a multiple of {ranks}"
        )
