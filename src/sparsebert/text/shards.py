"""One shard of a token store: the tokens of one block of text, with its document and sentence index.

A shard is a sealed safetensors file of four tensors:

    ids        uint16 or uint32 [tokens]        token ids, no special tokens between them
    sentences  uint32 [num_sentences + 1]       where each sentence starts in ids; the last entry is the end
    documents  uint32 [num_documents + 1]       where each document starts in sentences; the last entry is the end
    hashes     uint64 [num_documents]           of the document's text: decides the split, shows copies
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Int64, UInt, UInt32, UInt64
from numpy import ndarray
from tokenizers import Tokenizer

from sparsebert.errors import CorpusError
from sparsebert.text.blocks import Block
from sparsebert.text.documents import Complaints, Document, documents
from sparsebert.text.sentences import split_sentences

Split = Literal["train", "held_out"]
SPLITS: tuple[Split, ...] = ("train", "held_out")
WITHOUT_TOKENS = "sentence_without_tokens"  # counted as skipped, but no error: there was nothing to read
_SENTENCES_A_CALL = 2000  # what the library returns costs some 100 bytes a token until it is copied


@dataclass(frozen=True)
class Shard:
    """Documents, sentences and tokens as flat arrays."""

    ids: UInt[ndarray, " tokens"]
    sentences: UInt32[ndarray, " num_sentences_and_one"]
    documents: UInt32[ndarray, " num_documents_and_one"]
    hashes: UInt64[ndarray, " num_documents"]

    def tensors(self) -> dict[str, ndarray]:
        return {"ids": self.ids, "sentences": self.sentences, "documents": self.documents, "hashes": self.hashes}

    def sentence(self, number: int) -> UInt[ndarray, " tokens"]:
        return self.ids[self.sentences[number] : self.sentences[number + 1]]

    def tokens_per_document(self) -> Int64[ndarray, " num_documents"]:
        return np.diff(self.sentences[self.documents].astype(np.int64))

    def held_out(self, fraction: float) -> Bool[ndarray, " num_documents"]:
        """Which documents are held out: a property of each text alone, so that a growing corpus moves none."""
        if fraction >= 1:
            return np.ones(len(self.hashes), dtype=bool)
        return self.hashes < np.uint64(int(fraction * 2.0**64))

    def counts(self, fraction: float) -> dict[str, int]:
        held_out = self.held_out(fraction)
        return {
            "documents": len(self.hashes),
            "sentences": len(self.sentences) - 1,
            "tokens": len(self.ids),
            "held_out_documents": int(held_out.sum()),
            "held_out_tokens": int(self.tokens_per_document()[held_out].sum()),
        }


def id_dtype(vocab_size: int) -> np.dtype[Any]:
    return np.dtype(np.uint16 if vocab_size <= 2**16 else np.uint32)


def shard_from_tensors(tensors: Mapping[str, ndarray], vocab_size: int, name: str) -> Shard:
    """A shard whose index is checked, so that nothing read through it can lie outside its arrays."""
    try:
        shard = Shard(**tensors)
    except TypeError as error:
        raise CorpusError(f"{name} is not a shard of a token store ({sorted(tensors)}); prepare it again") from error
    expected = {"ids": id_dtype(vocab_size), "sentences": np.uint32, "documents": np.uint32, "hashes": np.uint64}
    right = (
        all(array.dtype == expected[key] and array.ndim == 1 for key, array in tensors.items())
        and _is_index(shard.sentences, len(shard.ids))
        and _is_index(shard.documents, len(shard.sentences) - 1)
        and len(shard.hashes) == len(shard.documents) - 1
        and (len(shard.ids) == 0 or int(shard.ids.max()) < vocab_size)
    )
    if not right:
        raise CorpusError(f"{name} has an index that does not fit its tokens; delete the corpus and prepare it again")
    return shard


def _is_index(starts: ndarray, end: int) -> bool:
    """Starts at 0, ends at the end, and no part is empty."""
    return len(starts) > 0 and starts[0] == 0 and int(starts[-1]) == end and bool((starts[1:] > starts[:-1]).all())


def encode_block(block: Block, tokenizer: Tokenizer, *, seed: int, complaints: Complaints) -> Shard:
    """Read, split and tokenise one block. Documents that end up with fewer than two sentences are bad input."""
    found = list(documents(block, complaints))
    texts = [[sentence for paragraph in one.paragraphs for sentence in split_sentences(paragraph)] for one in found]
    ids, lengths = _encode(list(chain.from_iterable(texts)), tokenizer)
    owner = np.repeat(np.arange(len(found)), [len(sentences) for sentences in texts])
    with_tokens = lengths > 0  # a sentence of control characters only has none
    complaints.skipped[WITHOUT_TOKENS] += int((~with_tokens).sum())
    per_document = np.bincount(owner[with_tokens], minlength=len(found))
    for number in np.flatnonzero(per_document < 2):
        complaints.add(found[number].first_line, "one_sentence")
    kept = with_tokens & (per_document[owner] >= 2)
    chosen = [document for document, count in zip(found, per_document, strict=True) if count >= 2]
    return Shard(
        ids[np.repeat(kept, lengths)],
        _starts(lengths[kept]),
        _starts(per_document[per_document >= 2]),
        np.array([text_hash(document, seed) for document in chosen], dtype=np.uint64),
    )


def _encode(sentences: list[str], tokenizer: Tokenizer) -> tuple[ndarray, Int64[ndarray, " num_sentences"]]:
    dtype = id_dtype(tokenizer.get_vocab_size(with_added_tokens=True))
    parts: list[ndarray] = [np.zeros(0, dtype)]
    lengths: list[int] = []
    for start in range(0, len(sentences), _SENTENCES_A_CALL):
        # The fast variant leaves out character offsets, which nothing here needs.
        encodings = tokenizer.encode_batch_fast(sentences[start : start + _SENTENCES_A_CALL], add_special_tokens=False)
        lists = [encoding.ids for encoding in encodings]
        lengths.extend(map(len, lists))
        parts.append(np.fromiter(chain.from_iterable(lists), dtype))
    return np.concatenate(parts), np.array(lengths, dtype=np.int64)


def _starts(lengths: ndarray) -> UInt32[ndarray, " and_one"]:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.uint32)


def text_hash(document: Document, seed: int) -> int:
    """64 bits of the document's text, keyed by the seed of the split."""
    key = seed.to_bytes(16, "little", signed=True)
    return int.from_bytes(
        hashlib.blake2b("\n".join(document.paragraphs).encode(), digest_size=8, key=key).digest(), "little"
    )
