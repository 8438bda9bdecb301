"""Choosing which units to keep under a budget of entries: deterministic, balanced over heads, nearest to the target.

A unit is what is kept or dropped as a whole: one offset of a structured gate, one entry (or a symmetric pair) of an
unstructured one. Heads compete: units of all heads are ranked together, because one price of density was paid for
all of them, but every head first takes its own best until it has its assured part of an even share.
"""

from typing import Literal, get_args

import numpy as np
from jaxtyping import Bool, Float, Int64

from sparsebert.errors import GateError
from sparsebert.settings import Share, fits

Diagonal = Literal["learned", "keep", "drop"]
Method = Literal["threshold", "sample"]

# Of all entries; where whole units end further away than this, one of them is exchanged for a better fit.
_CLOSE_ENOUGH = 0.0025


def check_wishes(sparsity: float | None, method: Method | None, diagonal: Diagonal, assured: float) -> None:
    """Refuse how a pattern is to be frozen where it is none of the ways there are."""
    for name, given, choices in (("method", method, Method), ("diagonal", diagonal, Diagonal)):
        if given is not None and given not in get_args(choices):
            raise GateError(f"{name} is {given!r}; expected one of {', '.join(get_args(choices))}")
    for name, share in (("sparsity", sparsity), ("assured", assured)):
        if share is not None and not fits(share, Share):
            raise GateError(f"{name} is {share!r}; it must lie between 0 and 1")


def keep_within(
    scores: Float[np.ndarray, "heads units"],
    sizes: Int64[np.ndarray, "*heads units"],
    budget: int,
    *,
    entries: int,
    assured: float = 0.5,
) -> Bool[np.ndarray, "heads units"]:
    """The best units whose sizes add up to about `budget`, of `entries` in all heads.

    A score of minus infinity is never kept. Ties go to the lower head, then the lower unit.
    """
    heads = len(scores)
    keep = np.zeros(scores.shape, dtype=bool)
    sizes = np.broadcast_to(sizes, scores.shape)  # of each head where they differ
    for head in range(heads):
        _take_best(keep[head], scores[head], sizes[head], int(assured * budget / heads))
    rest = np.where(keep, -np.inf, scores).reshape(-1)
    flat = keep.reshape(-1)
    all_sizes = sizes.reshape(-1)
    _take_best(flat, rest, all_sizes, budget - int(all_sizes[flat].sum()))
    _exchange_one(flat, scores.reshape(-1), all_sizes, budget, entries)
    return keep


def _take_best(keep: np.ndarray, scores: np.ndarray, sizes: np.ndarray, budget: int) -> None:
    """Keep, in order of score, until the next one would lead further away from the budget."""
    order = np.argsort(-scores, kind="stable")
    order = order[np.isfinite(scores[order]) | (scores[order] > 0)]
    if budget <= 0 or not len(order):
        return
    totals = np.concatenate([[0], np.cumsum(sizes[order])])
    count = int(np.abs(totals - budget).argmin())
    keep[order[:count]] = True


def _exchange_one(keep: np.ndarray, scores: np.ndarray, sizes: np.ndarray, budget: int, entries: int) -> None:
    """Where the total misses the budget by much, let the weakest kept unit give way to the best that fits."""
    missing = budget - int(sizes[keep].sum())
    if abs(missing) <= _CLOSE_ENOUGH * entries or not keep.any():
        return
    free = np.isfinite(scores) & ~keep
    weakest = int(np.flatnonzero(keep)[np.argmin(scores[keep])])
    for given, room in ((0, missing), (int(sizes[weakest]), missing + int(sizes[weakest]))):
        miss = np.abs(room - sizes)
        fits = free & (miss <= _CLOSE_ENOUGH * entries)
        if fits.any():
            if given:
                keep[weakest] = False
            keep[np.flatnonzero(fits)[np.argmax(scores[fits])]] = True
            return
