"""A packed row (one example's tokens after another's, no padding) for backends that take batches of one length only."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import groupby

import torch
from jaxtyping import Float
from torch import Tensor

from sparsebert.attention.inputs import Inputs


def attend_packed(backend: Callable[[Inputs], Tensor], inputs: Inputs) -> Float[Tensor, "1 heads n d"]:
    """Neighbours of one length are a batch without padding, and a view: a call of the backend for each such run."""
    outputs = [backend(run).transpose(1, 2).flatten(0, 1) for run in _runs(inputs)]
    joined = torch.cat(outputs) if outputs else inputs.query[0].transpose(0, 1)
    return joined[None].transpose(1, 2)


def _runs(inputs: Inputs) -> Iterator[Inputs]:
    first = 0
    for length, alike in groupby([] if inputs.lengths is None else inputs.lengths.tolist()):
        examples = len(list(alike))
        last = first + examples * length
        if length:
            query, key, value = (
                tensor[0, :, first:last].view(inputs.heads, examples, length, -1).transpose(0, 1)
                for tensor in (inputs.query, inputs.key, inputs.value)
            )
            yield replace(inputs, query=query, key=key, value=value, lengths=None, packed=False)
        first = last
