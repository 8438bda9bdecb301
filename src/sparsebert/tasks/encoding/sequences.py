"""Token sequences of many lengths in flat arrays, and padded batches of them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int32, Int64
from tokenizers import Tokenizer
from torch import Tensor

from sparsebert.errors import TaskError
from sparsebert.text import special_ids

_CHUNK = 1024  # texts encoded at once: the library's encodings are large
_SHORTEST = 8  # tokens: room for the special ones and a word of each text


@dataclass(frozen=True)
class Batch:
    """Sequences padded to the longest of them."""

    input_ids: Int64[Tensor, "rows n"]
    token_type_ids: Int64[Tensor, "rows n"]
    lengths: Int64[Tensor, " rows"]

    @property
    def num_tokens(self) -> int:
        return int(self.lengths.sum())

    def padding(self) -> Int64[Tensor, "rows n"]:
        """1 for real tokens: what transformers calls attention_mask."""
        return (torch.arange(self.input_ids.shape[1], device=self.lengths.device) < self.lengths[:, None]).long()

    def to(self, device: torch.device) -> "Batch":
        return Batch(self.input_ids.to(device), self.token_type_ids.to(device), self.lengths.to(device))


@dataclass(frozen=True)
class Sequences:
    """All sequences of a data set, one after another; a few bytes a token."""

    ids: Int32[np.ndarray, " tokens"]
    starts: Int64[np.ndarray, " sequences_and_one"]
    seconds: Int32[np.ndarray, " sequences"]  # where the second segment begins; the length where there is none
    pad: int  # id of the padding token

    @classmethod
    def of(cls, items: Sequence[tuple[Int32[np.ndarray, " n"], int]], pad: int) -> "Sequences":
        """From (ids, where the second segment begins) of each sequence."""
        lengths = [len(ids) for ids, _ in items]
        starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        ids = np.concatenate([ids for ids, _ in items]) if items else np.zeros(0, dtype=np.int32)
        return cls(ids.astype(np.int32), starts, np.array([second for _, second in items], dtype=np.int32), pad)

    def __len__(self) -> int:
        return len(self.seconds)

    @property
    def lengths(self) -> Int64[np.ndarray, " sequences"]:
        return np.diff(self.starts)

    def batch(self, indices: Int64[np.ndarray, " rows"]) -> Batch:
        """These sequences, padded on the right to the longest."""
        starts, lengths = self.starts[indices], self.lengths[indices]
        places = np.arange(int(lengths.max()))
        real = places < lengths[:, None]
        ids = np.full(real.shape, self.pad, dtype=np.int64)
        ids[real] = self.ids[(starts[:, None] + places)[real]]
        types = (real & (places >= self.seconds[indices][:, None])).astype(np.int64)
        return Batch(torch.from_numpy(ids), torch.from_numpy(types), torch.from_numpy(lengths))


def encode_pairs(tokenizer: Tokenizer, pairs: Sequence[tuple[str, ...]], length: int) -> Sequences:
    """[CLS] first [SEP] second [SEP], the longer text cut until both fit; a text alone is [CLS] first [SEP]."""
    if length < _SHORTEST:
        raise TaskError(f"inputs of {length} tokens are too short; use a length of at least {_SHORTEST}")
    cutting = Tokenizer.from_str(tokenizer.to_str())  # a tokenizer with settings of its own
    cutting.encode_special_tokens = tokenizer.encode_special_tokens
    cutting.enable_truncation(length, strategy="longest_first")
    inputs = [pair if len(pair) == 2 else pair[0] for pair in pairs]
    items = [
        (np.array(encoding.ids, dtype=np.int32), len(encoding.ids) - sum(encoding.type_ids))
        for start in range(0, len(inputs), _CHUNK)
        for encoding in cutting.encode_batch_fast(inputs[start : start + _CHUNK])
    ]
    return Sequences.of(items, special_ids(tokenizer).pad)
