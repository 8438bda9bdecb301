"""Inputs beyond a pattern that has a rule: it is rebuilt for the rows that need it, at doublings of its length.

A row's pattern depends on the row alone, never on what it is batched with. At doublings few are ever built.
"""

from collections.abc import Callable
from functools import lru_cache
from itertools import groupby

import torch
from torch import Tensor

from sparsebert.patterns import Pattern

# Of every row and head; the weights where they are asked for.
Attended = tuple[Tensor, Tensor | None]
# query, key, value, lengths, and the length that a pattern has to reach
Attend = Callable[[Tensor, Tensor, Tensor, Tensor | None, int], Attended]


def follows(pattern: Pattern, length: int) -> bool:
    """Whether a pattern is rebuilt for an input of this length; one of explicit entries has no rule, and a compiled
    graph cannot choose by the length of its rows."""
    return (
        pattern.rule is not None
        and length > pattern.length
        and not torch.compiler.is_compiling()
        and torch._C._get_tracing_state() is None
    )


def reaching(pattern: Pattern, length: int) -> Pattern:
    """The pattern itself, or rebuilt so that it reaches an input of this length."""
    return _rebuilt(pattern, reach_of(pattern, length)) if follows(pattern, length) else pattern


@lru_cache(maxsize=8)  # the doublings of two models, from 128 tokens to 2,048
def _rebuilt(pattern: Pattern, length: int) -> Pattern:
    return pattern.at(length)


def reach_of(pattern: Pattern, length: int) -> int:
    """The length at which a row of so many tokens has its pattern."""
    reach = pattern.length
    while reach < length:
        reach *= 2
    return reach


def attend_by_length(
    attend: Attend, pattern: Pattern, query: Tensor, key: Tensor, value: Tensor, lengths: Tensor | None
) -> Attended:
    """Rows under the pattern of their own length; padding gives zeros, as everywhere."""
    batch, _, n, _ = query.shape
    own = torch.full((batch,), n) if lengths is None else lengths.cpu()
    reaches = torch.tensor([reach_of(pattern, length) for length in own.tolist()])
    if bool((reaches == reaches[0]).all()) and int(reaches[0]) >= n:
        return attend(query, key, value, lengths, int(reaches[0]))
    output, weights = torch.zeros_like(query), None
    for reach in reaches.unique().tolist():
        rows, seen = (reaches == reach).nonzero()[:, 0].to(query.device), min(reach, n)
        queries, keys, values = (tensor[rows, :, :seen] for tensor in (query, key, value))
        made, weighed = attend(queries, keys, values, own[rows.cpu()].to(query.device), reach)
        output = output.index_put((rows,), _padded(made, n))
        if weighed is not None:
            weights = query.new_zeros(batch, query.shape[1], n, n) if weights is None else weights
            weights = weights.index_put((rows,), _padded(_padded(weighed, n).mT, n).mT)
    return output, weights


def attend_packed_by_length(
    attend: Attend, pattern: Pattern, query: Tensor, key: Tensor, value: Tensor, lengths: Tensor
) -> Attended:
    """The same for a packed row: neighbours under one pattern are a packed row by themselves, and a view."""
    made, first = [], 0
    for reach, alike in groupby(lengths.tolist(), lambda length: reach_of(pattern, length)):
        own = list(alike)
        query_part, key_part, value_part = (tensor[:, :, first : first + sum(own)] for tensor in (query, key, value))
        made.append(attend(query_part, key_part, value_part, torch.tensor(own), reach)[0].transpose(1, 2))
        first += sum(own)
    return torch.cat(made, 1).transpose(1, 2), None


def _padded(tensor: Tensor, n: int) -> Tensor:
    """Zeros behind what is there, to n rows."""
    return torch.nn.functional.pad(tensor, (0, 0, 0, n - tensor.shape[2]))
