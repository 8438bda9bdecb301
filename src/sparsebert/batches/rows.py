"""What all batches share: rows of a step that depend on nothing but (corpus, settings, seed, step, row)."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Generic, TypeVar

from jaxtyping import Int64
from torch import Tensor

from sparsebert.batches.pairs import NUM_SPECIAL
from sparsebert.batches.sentence_places import SentencePlaces
from sparsebert.errors import ConfigError
from sparsebert.text import SPLITS, Split, TokenStore

_MIN_LENGTH = NUM_SPECIAL + 2  # one token a segment


@dataclass(frozen=True)
class TextBatch:
    """What a model reads."""

    input_ids: Int64[Tensor, "rows n"]  # [PAD] beyond each length
    token_type_ids: Int64[Tensor, "rows n"]  # 0 for [CLS] A [SEP], 1 for B [SEP], 0 for padding
    lengths: Int64[Tensor, " rows"]  # real tokens in each row


RowOf = TypeVar("RowOf")
BatchOf = TypeVar("BatchOf", bound=TextBatch)


class RowBatches(ABC, Generic[RowOf, BatchOf]):
    """The batches of a split of a token store.

    The global batch of a step has `batch_size` rows; rank r of R makes rows r * batch_size / R and on. Every draw is
    keyed by (seed, stream, step, row in the global batch), so the rows do not depend on who makes them, or when.
    """

    def __init__(
        self,
        store: TokenStore,
        *,
        batch_size: int,  # rows of all ranks together
        length: int,  # tokens in a row, at most
        seed: int,
        split: Split = "train",
        rank: int = 0,
        ranks: int = 1,
    ) -> None:
        _require_settings(batch_size, length, split, rank, ranks)
        self.store, self.length, self.seed, self.split = store, length, seed, split
        self.num_rows = batch_size // ranks
        self.first_row = rank * self.num_rows
        self.places = SentencePlaces(store, split)

    @abstractmethod
    def row(self, step: int, row: int) -> RowOf:
        """One row of the global batch of a step."""

    @abstractmethod
    def collate(self, rows: list[RowOf]) -> BatchOf:
        """Rows as tensors."""

    def batch(self, step: int) -> BatchOf:
        """This rank's rows of the batch of a step; needs no other step to have been made."""
        if step < 0:
            raise ConfigError(f"step {step} does not exist; steps count from 0")
        return self.collate([self.row(step, self.first_row + row) for row in range(self.num_rows)])


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
