"""Where a drawn number points to: a token position of one split -> its shard, document and sentence."""

from dataclasses import dataclass

import numpy as np

from sparsebert.errors import CorpusError
from sparsebert.text import Shard, Split, TokenStore

_MAX_DRAWS = 1000


@dataclass(frozen=True)
class SentencePlace:
    """One sentence, and the document around it."""

    shard: Shard
    document: tuple[int, int]  # number of the shard, number of the document inside it
    text_hash: int  # equal for documents of equal text
    sentence: int  # inside the shard
    first_sentence: int  # of the document
    last_sentence: int
    start: int  # where the document's tokens begin among the tokens of the split
    num_tokens: int  # of the document

    def tokens_from(self, sentence: int, target: int, least: int) -> np.ndarray:
        """Where sentences start in the shard's ids: from this one on until `target` tokens, at least `least` of them.

        The last entry is the end; no sentence beyond the document is taken.
        """
        # Every sentence has a token, so `target` sentences are enough.
        end = min(self.last_sentence + 1, sentence + max(target, least))
        starts = self.shard.sentences[sentence : end + 1].astype(np.int64)
        wanted = int(np.searchsorted(starts[1:], starts[0] + target)) + 1
        return starts[: max(wanted, least) + 1]


class SentencePlaces:
    """All token positions of a split, end to end in the order of the store."""

    def __init__(self, store: TokenStore, split: Split) -> None:
        self.store, self.split = store, split
        self.starts = np.concatenate([[0], np.cumsum([entry.tokens_of(split) for entry in store.shards])]).astype(int)
        self.num_tokens = int(self.starts[-1])
        num_documents = sum(entry.documents_of(split) for entry in store.shards)
        if num_documents < 2:
            raise CorpusError(
                f"the {split.replace('_', '-')} part of {store.path} has {num_documents} documents, but sentence pairs "
                "need two or more; prepare more text, or set another share of it aside"
            )

    def at(self, position: int) -> SentencePlace:
        """The place of one token of the split."""
        number = int(np.searchsorted(self.starts, position, side="right")) - 1
        opened = self.store.shard(number)
        shard, token_starts = opened.shard, opened.token_starts[self.split]
        local = position - int(self.starts[number])
        slot = int(np.searchsorted(token_starts, local, side="right")) - 1
        document = int(opened.documents[self.split][slot])
        first, end = int(shard.documents[document]), int(shard.documents[document + 1])
        inside = local - int(token_starts[slot])
        starts = shard.sentences[first:end]
        sentence = first + int(np.searchsorted(starts, starts.dtype.type(starts[0] + inside), side="right")) - 1
        return SentencePlace(
            shard=shard,
            document=(number, document),
            text_hash=int(shard.hashes[document]),
            sentence=sentence,
            first_sentence=first,
            last_sentence=end - 1,
            start=int(self.starts[number] + token_starts[slot]),
            num_tokens=int(token_starts[slot + 1] - token_starts[slot]),
        )

    def draw(self, draw: np.random.Generator) -> SentencePlace:
        """The sentence of a token drawn uniformly."""
        return self.at(int(draw.integers(self.num_tokens)))

    def draw_elsewhere(self, draw: np.random.Generator, here: SentencePlace) -> SentencePlace:
        """The sentence of a token drawn uniformly from the other documents; never from a copy of this one."""
        for _ in range(_MAX_DRAWS):
            position = int(draw.integers(self.num_tokens - here.num_tokens))
            # Positions from here.start on move up past this document, so no draw is wasted on it.
            there = self.at(position + here.num_tokens if position >= here.start else position)
            if there.text_hash != here.text_hash:
                return there
        raise CorpusError(
            f"{self.store.path} holds one document over and over ({_MAX_DRAWS} draws met only copies of it); "
            "remove the copies from the text and prepare it again"
        )
