"""Text to try things on, and how minilm makes an embedding of it: what the examples share."""

import torch
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn.functional import normalize

from sparsebert.text.builtin import python_docs


def documents() -> list[str]:
    """The prose of Python's language reference, which comes with Python: a title and paragraphs each."""
    return python_docs().decode().strip().split("\n\n")


def paragraphs() -> list[str]:
    return [line for document in documents() for line in document.split("\n")[1:]]


def rows(tokenizer: Tokenizer, length: int) -> Tensor:
    """Token ids [rows, length] of all paragraphs that fill a row, cut there: no padding; none comes twice."""
    encoded = (tokenizer.encode(text).ids for text in paragraphs())
    whole = {(*ids[: length - 1], ids[-1]): None for ids in encoded if len(ids) >= length}
    return torch.tensor(list(whole))


def embed(model: torch.nn.Module, ids: Tensor) -> Tensor:
    """As sentence-transformers reads minilm: the mean of the last states, of length one."""
    return normalize(model(ids).last_hidden_state.mean(1), dim=-1)
