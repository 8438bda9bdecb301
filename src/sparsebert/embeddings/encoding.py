"""encode(): any number of texts, batched by length, with a watcher who is told how it goes."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import overload

import numpy as np
from jaxtyping import Float

from sparsebert.embeddings.batching import BATCH_TOKENS, batches_by_length
from sparsebert.embeddings.chunks import Chunk
from sparsebert.embeddings.encoder import Encoder, Tokens
from sparsebert.errors import ConfigError
from sparsebert.patterns import Pattern
from sparsebert.progress import Watcher

_READ_AT_ONCE = 1024  # texts that are tokenised together


@dataclass(frozen=True)
class Encoded:
    """What became of some texts, in their order."""

    vectors: list[Float[np.ndarray, "chunks width"]]  # one row a text, or one for each of its chunks
    tokens: list[Tokens]
    seconds: float

    @property
    def embeddings(self) -> Float[np.ndarray, "texts width"]:
        """Of whole texts."""
        return np.concatenate(self.vectors)

    @property
    def chunks(self) -> list[list[Chunk]]:
        """Of each text."""
        return [
            [
                Chunk(span.start, span.end, span.last - span.first, vector)
                for span, vector in zip(one.spans, vectors, strict=True)
            ]
            for one, vectors in zip(self.tokens, self.vectors, strict=True)
        ]

    @property
    def num_tokens(self) -> int:
        return sum(len(one.ids) for one in self.tokens)

    @property
    def num_cut(self) -> int:
        """Texts that go on where the model ends."""
        return sum(one.is_cut for one in self.tokens)


@overload
def encode(
    texts: Sequence[str],
    model: str | Path,
    *,
    pattern: Pattern | str | None = ...,
    length: int | None = ...,
    precision: str = ...,
    chunks: None = ...,
    batch_tokens: int = ...,
) -> Float[np.ndarray, "texts width"]: ...


@overload
def encode(
    texts: Sequence[str],
    model: str | Path,
    *,
    pattern: Pattern | str | None = ...,
    length: int | None = ...,
    precision: str = ...,
    chunks: int,
    batch_tokens: int = ...,
) -> list[list[Chunk]]: ...


def encode(
    texts: Sequence[str],
    model: str | Path,
    *,
    pattern: Pattern | str | None = None,
    length: int | None = None,
    precision: str = "fp32",
    chunks: int | None = None,
    batch_tokens: int = BATCH_TOKENS,
) -> Float[np.ndarray, "texts width"] | list[list[Chunk]]:
    """Embeddings of texts, one a row, as the model's folder makes them (pooling, normalising).

    pattern: in place of the model's own; a Pattern, a file, or a name such as star. length: tokens beyond which a text
    is cut; None: as the model's folder says. precision: fp32, bf16 or int8. chunks: an embedding of every so many
    tokens instead, each from one pass over the whole text. batch_tokens: in a batch. An embedding does not
    depend on the texts beside it.
    """
    check_sizes(chunks, batch_tokens)
    encoder = Encoder(model, pattern=pattern, length=length, precision=precision)
    made = encode_texts(encoder, texts, chunks=chunks, batch_tokens=batch_tokens)
    return made.embeddings if chunks is None else made.chunks


def check_sizes(chunks: int | None, batch_tokens: int) -> None:
    """Refuse sizes that mean nothing, before a model is loaded."""
    if chunks is not None and chunks < 1:
        raise ConfigError(f"chunks is {chunks}; expected at least one token in a chunk")
    if batch_tokens < 1:
        raise ConfigError(f"batch_tokens is {batch_tokens}; expected at least one token in a batch")


def encode_texts(
    encoder: Encoder,
    texts: Sequence[str],
    *,
    chunks: int | None = None,
    batch_tokens: int = BATCH_TOKENS,
    watcher: Watcher | None = None,
) -> Encoded:
    """The same with an encoder that is there already."""
    if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
        raise ConfigError(f"texts is a {type(texts).__name__} of other things; expected a list of strings")
    if not texts:
        raise ConfigError("there are no texts to encode; give at least one")
    if chunks is not None and encoder.pooling != "mean":
        raise ConfigError(
            "this model's embedding is the state of its first token, which a chunk has not; chunks need a model that "
            "takes the mean"
        )
    began, watcher = time.monotonic(), watcher or Watcher()
    tokens = [
        one
        for first in range(0, len(texts), _READ_AT_ONCE)
        for one in encoder.tokens(list(texts[first : first + _READ_AT_ONCE]), chunks)
    ]
    found = _run(encoder, tokens, batch_tokens, watcher)
    return Encoded([found[number] for number in range(len(texts))], tokens, time.monotonic() - began)


def _run(
    encoder: Encoder, tokens: list[Tokens], batch_tokens: int, watcher: Watcher
) -> dict[int, Float[np.ndarray, "chunks width"]]:
    found: dict[int, Float[np.ndarray, "chunks width"]] = {}
    total, done, began = sum(len(one.ids) for one in tokens), 0, time.monotonic()
    watcher.start(0, len(tokens))
    try:
        for batch in batches_by_length([len(one.ids) for one in tokens], batch_tokens, packed=encoder.packs):
            found |= zip(batch, encoder.embeddings([tokens[number] for number in batch]), strict=True)
            done += sum(len(tokens[number].ids) for number in batch)
            speed = done / (time.monotonic() - began)
            watcher.step(len(found), f"{speed:,.0f} tokens/s", (total - done) / speed)
    finally:
        watcher.stop()
    return found
