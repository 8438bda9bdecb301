"""Plain text as batches: rows of many lengths, nothing corrupted.

A model that learns to agree with another one has to agree on whatever users send: a sentence, a few of them, a full
row, two texts side by side. So every row first draws its kind.
"""

from typing import Any

import numpy as np
import torch
from jaxtyping import UInt
from numpy import ndarray

from sparsebert.batches.pairs import draw_pair
from sparsebert.batches.rows import RowBatches, TextBatch
from sparsebert.draws import generator
from sparsebert.text import TokenStore

# Shares of the rows: as long as the text allows, two texts, one of a drawn length; what is left is a single sentence.
FULL, PAIR, ANY = 0.55, 0.15, 0.15

Texts = list[UInt[ndarray, " tokens"]]  # the one or two of a row


class PlainBatches(RowBatches[Texts, TextBatch]):
    """Uncorrupted rows over a token store, each batch as wide as its longest row.

    full: share of the rows that are as long as they may be; the other kinds keep their proportions.
    """

    def __init__(self, store: TokenStore, *, full: float = FULL, **sizes: Any) -> None:
        super().__init__(store, **sizes)
        self.full = full

    def row(self, step: int, row: int) -> Texts:
        draw = generator(self.seed, f"plain/{self.split}", step, row)
        room = self.length - 2  # [CLS] text [SEP]
        kind = draw.random()
        if kind < self.full:
            return [self._text(draw, room)]
        kind = (kind - self.full) / (1 - self.full) * (1 - FULL)
        if kind < PAIR:
            pair = draw_pair(self.places, self.length, draw)
            return [pair.first, pair.second]
        if kind < PAIR + ANY:
            return [self._text(draw, int(draw.integers(1, room + 1)))]
        return [self._sentence(draw, room)]

    def _sentence(self, draw: np.random.Generator, room: int) -> UInt[ndarray, " tokens"]:
        place = self.places.draw(draw)
        return place.shard.sentence(place.sentence)[:room]

    def _text(self, draw: np.random.Generator, target: int) -> UInt[ndarray, " tokens"]:
        """`target` tokens from a drawn sentence on, or from earlier ones where the document would end too soon."""
        place = self.places.draw(draw)
        starts, end = place.shard.sentences, int(place.shard.sentences[place.last_sentence + 1])
        # The latest start that leaves enough text, if any does.
        latest = int(np.searchsorted(starts[place.first_sentence : place.sentence + 1], max(end - target, 0), "right"))
        start = int(starts[place.first_sentence + max(latest - 1, 0)])
        return place.shard.ids[start : min(end, start + target)]

    def collate(self, rows: list[Texts]) -> TextBatch:
        special = self.store.special
        lengths = [1 + sum(len(text) + 1 for text in texts) for texts in rows]
        input_ids = np.full((len(rows), max(lengths)), special.pad, dtype=np.int64)
        token_type_ids = np.zeros_like(input_ids)
        for number, texts in enumerate(rows):
            input_ids[number, 0] = special.cls
            end = 1
            for segment, text in enumerate(texts):
                start, end = end, end + len(text) + 1
                input_ids[number, start : end - 1] = text
                input_ids[number, end - 1] = special.sep
                token_type_ids[number, start:end] = segment
        return TextBatch(
            torch.from_numpy(input_ids), torch.from_numpy(token_type_ids), torch.tensor(lengths, dtype=torch.int64)
        )
