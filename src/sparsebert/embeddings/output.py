"""Embeddings on disk: .npy, a row a text; or .jsonl, an object a text or a chunk."""

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from sparsebert.embeddings.encoding import Encoded
from sparsebert.errors import ConfigError
from sparsebert.files import write_atomic

_DIGITS = 8  # more than a float32 holds of a number below one


def check_out(path: Path, *, in_chunks: bool) -> None:
    """Refuse a name that says no format, before there is anything to write."""
    if path.suffix not in (".npy", ".jsonl"):
        raise ConfigError(f"{path} says no format to write embeddings in; expected a name that ends in .npy or .jsonl")
    if in_chunks and path.suffix == ".npy":
        raise ConfigError(f"{path} would hold embeddings alone, but chunks have spans too; choose a .jsonl file")


def write_embeddings(path: Path, made: Encoded, ids: list[Any] | None = None, *, in_chunks: bool = False) -> None:
    """One file, whole or not at all. ids: of the texts, noted in JSON Lines beside their numbers."""
    if path.suffix == ".npy":
        stream = io.BytesIO()
        np.save(stream, made.embeddings)
        write_atomic(path, stream.getvalue())
        return
    lines = _chunks(made, ids) if in_chunks else _texts(made, ids)
    write_atomic(path, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines).encode())


def _texts(made: Encoded, ids: list[Any] | None) -> Iterator[dict[str, Any]]:
    for number, vector in enumerate(made.embeddings):
        yield {**_about(number, ids), "embedding": _numbers(vector)}


def _chunks(made: Encoded, ids: list[Any] | None) -> Iterator[dict[str, Any]]:
    for number, chunks in enumerate(made.chunks):
        for place, one in enumerate(chunks):
            where = {"chunk": place, "start": one.start, "end": one.end, "tokens": one.tokens}
            yield {**_about(number, ids), **where, "embedding": _numbers(one.embedding)}


def _about(number: int, ids: list[Any] | None) -> dict[str, Any]:
    return {"row": number} if ids is None else {"row": number, "id": ids[number]}


def _numbers(vector: np.ndarray) -> list[float]:
    return [round(float(value), _DIGITS) for value in vector]
