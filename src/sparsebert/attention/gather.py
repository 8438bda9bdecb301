"""Attention in plain tensor operators: each query's keys and values are gathered by a list. What any runtime executes.

A pattern's rows -> lists of keys, padded to one width -> gather, softmax, weighted sum. The few rows that keep many
keys (the border's) would make every list as wide as theirs, so they are computed apart, densely.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Int32
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes

from sparsebert.attention.inputs import Inputs
from sparsebert.errors import AttentionError
from sparsebert.patterns import Pattern

_GATHERED = 4.0  # what a gathered entry costs, as a multiple of one in a dense row


class Lists(NamedTuple):
    """A pattern as the graph holds it."""

    keys: Int32[Tensor, "heads positions most"]  # of rows with few; beyond their end: a position that there is not
    dense_rows: Int32[Tensor, " dense"]  # rows with many
    keep: Bool[Tensor, "heads dense positions"]  # what these keep
    slot: Int32[Tensor, " positions"]  # where a row stands among the dense ones; -1: it is none of them


class _Places(NamedTuple):
    """Which position of the pattern each token plays, and the other way round."""

    of_tokens: Int[Tensor, "batch_or_1 n"]
    lengths: Int[Tensor, " batch_or_1"]
    end: int  # positions of the pattern
    token: bool  # an example's last token plays the pattern's last position

    def tokens(self, positions: Int[Tensor, "batch_or_1 ..."]) -> tuple[Tensor, Bool[Tensor, "batch_or_1 ..."]]:
        """The tokens that play positions, and whether there are such."""
        each = (-1, *(1,) * (positions.ndim - 1))
        lengths = self.lengths.view(each)
        if not self.token:
            return positions.clamp(max=self.of_tokens.shape[1] - 1), positions < lengths
        last, is_last = (lengths - 1).clamp(min=0), positions == self.end - 1
        found = torch.where(is_last, last, positions).clamp(max=self.of_tokens.shape[1] - 1)
        return found, ((positions < last) | is_last) & (lengths > 0)


def attend_gather(inputs: Inputs) -> Float[Tensor, "batch heads n d"]:
    if inputs.gate is not None or inputs.bias is not None:
        raise AttentionError("backend 'gather' takes no gate and no bias; use backend='auto' or 'reference'")
    places = _places(inputs)
    if inputs.pattern is None:
        keep = torch.ones(1, 1, 1, dtype=torch.bool, device=inputs.query.device)
        output = _dense(inputs, inputs.query, keep[None].expand(-1, -1, -1, inputs.length))
    else:
        output = _listed(inputs, places, Lists(*(each.to(inputs.query.device) for each in _lists(inputs.pattern))))
    padded = inputs.padded()
    return output if padded is None else output.masked_fill(padded[:, None, :, None], 0.0)


def _listed(inputs: Inputs, places: _Places, lists: Lists) -> Float[Tensor, "batch heads n d"]:
    # What the dense rows keep of the tokens there are: [batch or 1, heads, dense, n]
    keep = lists.keep[:, :, places.of_tokens].permute(2, 0, 1, 3)
    if lists.keys.shape[2] == 0 and lists.dense_rows.shape[0] == places.end:  # all rows are dense
        rows = keep.gather(2, places.of_tokens[:, None, :, None].expand(-1, keep.shape[1], -1, keep.shape[3]))
        return _dense(inputs, inputs.query, rows)
    few = _gathered(inputs, places, lists)
    if lists.dense_rows.shape[0] == 0:
        return few
    tokens, _ = places.tokens(lists.dense_rows.long()[None])
    many = _dense(inputs, _rows_of(inputs.query, tokens), keep)
    slot, n = lists.slot[places.of_tokens].long(), inputs.length
    own = torch.where(slot >= 0, n + slot, torch.arange(n, device=slot.device))
    return _rows_of(torch.cat([few, many], 2), own)


def _gathered(inputs: Inputs, places: _Places, lists: Lists) -> Float[Tensor, "batch heads n d"]:
    """Every row by its list; what it gives for the dense rows is of no use."""
    batch, heads, n, size = inputs.query.shape
    positions = lists.keys[:, places.of_tokens].transpose(0, 1).long()  # [batch or 1, heads or 1, n, most]
    tokens, real = places.tokens(positions)
    examples = torch.arange(batch, device=tokens.device).view(-1, 1, 1, 1)
    each_head = torch.arange(heads, device=tokens.device).view(1, -1, 1, 1)
    flat = ((examples * n + tokens) * heads + each_head).flatten()
    shape = batch, heads, n, lists.keys.shape[2], size

    def listed(tensor: Tensor) -> Tensor:
        return tensor.transpose(1, 2).reshape(batch * n * heads, size).index_select(0, flat).view(shape)

    scores = inputs.scale * (inputs.query[:, :, :, None] * listed(inputs.key)).sum(-1)
    return (_weights(inputs, scores, real)[..., None] * listed(inputs.value)).sum(3)


def _dense(inputs: Inputs, query: Tensor, keep: Bool[Tensor, "..."]) -> Float[Tensor, "batch heads rows d"]:
    """Some rows over all tokens."""
    padded = inputs.padded()
    allowed = keep if padded is None else keep & ~padded[:, None, None, :]
    return _weights(inputs, inputs.scale * (query @ inputs.key.transpose(-1, -2)), allowed) @ inputs.value


def _weights(inputs: Inputs, scores: Tensor, allowed: Bool[Tensor, "..."]) -> Tensor:
    """A softmax over what is allowed; zeros where nothing is."""
    lowest = torch.finfo(scores.dtype).min
    weights = scores.masked_fill(~allowed, lowest).softmax(-1).masked_fill(~allowed, 0.0)
    return torch.nn.functional.dropout(weights, inputs.dropout) if inputs.dropout > 0 else weights


def _rows_of(tensor: Float[Tensor, "batch heads n d"], rows: Int[Tensor, "batch_or_1 some"]) -> Tensor:
    """Some rows of each example, joined heads side by side in memory."""
    batch, heads, n, size = tensor.shape
    flat = (torch.arange(batch, device=rows.device)[:, None] * n + rows).flatten()
    joined = tensor.transpose(1, 2).reshape(batch * n, heads, size).index_select(0, flat)
    return joined.view(batch, rows.shape[1], heads, size).transpose(1, 2)


def _places(inputs: Inputs) -> _Places:
    n, device, pattern = inputs.length, inputs.query.device, inputs.pattern
    tokens = torch.arange(n, device=device)[None]
    lengths = torch.full_like(tokens[:, 0], n) if inputs.lengths is None else inputs.lengths.to(device)
    if pattern is None or not inputs.anchored_to_token:
        return _Places(tokens, lengths, n if pattern is None else pattern.length, False)
    played = torch.where(tokens == (lengths - 1).clamp(min=0)[:, None], pattern.length - 1, tokens)
    return _Places(played, lengths, pattern.length, True)


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def _lists(pattern: Pattern) -> tuple[Tensor, ...]:
    return _made_lists(pattern)


@lru_cache(maxsize=64)  # more than an encoder has layers, each with a pattern of its own
def _made_lists(pattern: Pattern) -> tuple[Tensor, ...]:
    # Real numbers, whatever the graph is traced with; and such as can be trained with, whoever asked first.
    with _disable_current_modes(), torch.inference_mode(False):
        return tuple(torch.from_numpy(each) for each in lists_of(pattern))


def lists_of(pattern: Pattern) -> tuple[np.ndarray, ...]:
    """The arrays of Lists."""
    heads, length = pattern.heads, pattern.length
    starts = pattern.row_starts.astype(np.int64)
    counts = np.diff(starts, axis=1)
    widest = counts.max(axis=0)
    dense = np.sort(np.argsort(-widest, kind="stable")[: _num_dense(widest)])
    slot = np.full(length, -1, np.int32)
    slot[dense] = np.arange(len(dense), dtype=np.int32)
    few = np.where(slot < 0, widest, 0)
    places = np.arange(int(few.max(initial=0)))
    is_key = (places < counts[:, :, None]) & (slot < 0)[:, None]
    keys = np.where(is_key, pattern.keys[np.where(is_key, starts[:, :-1, None] + places, 0)], length).astype(np.int32)
    keep = np.zeros((heads, len(dense), length), bool)
    for head in range(heads):
        for place, row in enumerate(dense):
            keep[head, place, pattern.keys[starts[head, row] : starts[head, row + 1]]] = True
    return keys, dense.astype(np.int32), keep, slot


def _num_dense(widest: np.ndarray) -> int:
    """How many of the widest rows are dense, so that the whole costs least."""
    length = len(widest)
    in_order = np.append(np.sort(widest)[::-1], 0)
    dense = np.arange(length + 1)
    return int(np.argmin(dense * length + (length - dense) * in_order * _GATHERED))
