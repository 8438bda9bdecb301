"""Who can hear whom: how many layers of a pattern until every token has reached every other.

A token keeps what it knows through the residual connection, so the diagonal makes no difference here. All heads of a
layer count together.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from sparsebert.patterns import Pattern

_SOURCES = 256  # searched at a time, so that memory stays with n and not n²


@dataclass(frozen=True)
class Reach:
    """The sparse-universality condition, measured (Yun et al. 2020: all tokens connect within finitely many layers)."""

    length: int
    heads: int
    sparsity: float
    layers: int | None  # until every token has heard every other; None: never
    mean_layers: float  # over the ordered pairs that are connected
    unreachable: int  # ordered pairs (listener, speaker) that no depth connects
    heard_after: tuple[int, ...]  # ordered pairs i != j connected after 1, 2, ... layers
    neighbours_linked: bool  # each token attends to the one before it, or each to the one after: a path through all


def attends(pattern: Pattern) -> csr_array:
    """i -> j where some head lets i attend to j, as one sparse matrix."""
    pattern.require_one_layer("the reach of a pattern, which is the same in every layer,")
    length = pattern.length
    listeners = np.concatenate(
        [np.repeat(np.arange(length), np.diff(pattern.row_starts[head])) for head in range(pattern.heads)]
    )
    ones = np.ones(len(listeners), dtype=np.int32)
    return csr_array((ones, (listeners, pattern.keys)), shape=(length, length))


def reach(pattern: Pattern) -> Reach:
    """Search breadth-first from every token."""
    graph, length = attends(pattern), pattern.length
    counts = np.zeros(length + 1, dtype=np.int64)  # of pairs, by the number of layers between them
    for start in range(0, length, _SOURCES):
        sources = np.arange(start, min(start + _SOURCES, length))
        hops = dijkstra(graph, unweighted=True, indices=sources)
        counts += np.bincount(hops[np.isfinite(hops)].astype(np.int64), minlength=length + 1)
    connected = int(counts[1:].sum())
    layers = int(np.flatnonzero(counts)[-1])
    unreachable = length * (length - 1) - connected
    return Reach(
        length,
        pattern.heads,
        pattern.sparsity,
        None if unreachable else layers,
        float((counts * np.arange(length + 1)).sum() / connected) if connected else 0.0,
        unreachable,
        tuple(int(count) for count in np.cumsum(counts[1 : layers + 1])),
        _neighbours_linked(graph),
    )


def _neighbours_linked(graph: csr_array) -> bool:
    def complete(offset: int) -> bool:
        found: Bool[np.ndarray, " pairs"] = graph.diagonal(offset) > 0
        return bool(found.all())

    return complete(-1) or complete(1)
