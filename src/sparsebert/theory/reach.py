"""Who can hear whom: how many layers of a pattern until every token has reached every other.

A token keeps what it knows through the residual connection, so the diagonal makes no difference here. All heads of a
layer count together. A pattern of one layer stands for every layer of a model, however deep; one with layers of its own
is followed from its first layer to its last.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int64
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
    unreachable: int  # ordered pairs (listener, speaker) that no depth connects, or none of the pattern's own layers
    heard_after: tuple[int, ...]  # ordered pairs i != j connected after 1, 2, ... layers
    neighbours_linked: bool  # each token attends to the one before it, or each to the one after: a path through all
    own_layers: int  # of the pattern; 1: every layer of a model has the same


def attends(pattern: Pattern) -> csr_array:
    """i -> j where some head of the one layer lets i attend to j, as one sparse matrix."""
    length = pattern.length
    listeners = np.concatenate(
        [np.repeat(np.arange(length), np.diff(pattern.row_starts[head])) for head in range(pattern.heads)]
    )
    ones = np.ones(len(listeners), dtype=np.int32)
    return csr_array((ones, (listeners, pattern.keys)), shape=(length, length))


def reach(pattern: Pattern) -> Reach:
    """Follow what every token says through the layers."""
    graphs, length = [attends(pattern.layer(number)) for number in range(pattern.layers)], pattern.length
    counts = _at_any_depth(graphs[0]) if len(graphs) == 1 else _layer_by_layer(graphs)
    connected = int(counts[1:].sum())
    layers = int(np.flatnonzero(counts)[-1])
    unreachable = length * (length - 1) - connected
    return Reach(
        length,
        pattern.heads,
        pattern.sparsity,
        None if unreachable else layers,
        float((counts * np.arange(len(counts))).sum() / connected) if connected else 0.0,
        unreachable,
        tuple(int(count) for count in np.cumsum(counts[1 : layers + 1])),
        _neighbours_linked(sum(graphs[1:], graphs[0])),
        pattern.layers,
    )


def _at_any_depth(graph: csr_array) -> Int64[np.ndarray, " layers"]:
    """How many pairs are connected after 0, 1, 2 ... equal layers and not before, breadth-first from every token."""
    length = graph.shape[0]
    counts = np.zeros(length + 1, dtype=np.int64)
    for start in range(0, length, _SOURCES):
        sources = np.arange(start, min(start + _SOURCES, length))
        hops = dijkstra(graph, unweighted=True, indices=sources)
        counts += np.bincount(hops[np.isfinite(hops)].astype(np.int64), minlength=length + 1)
    return counts


def _layer_by_layer(graphs: Sequence[csr_array]) -> Int64[np.ndarray, " layers"]:
    """The same for layers that differ, and no further than the last of them."""
    length = graphs[0].shape[0]
    connected = np.zeros(len(graphs) + 1, dtype=np.int64)
    for start in range(0, length, _SOURCES):
        # heard[i, j]: token i knows what the j-th of these speakers said.
        heard = np.eye(length, min(_SOURCES, length - start), -start, dtype=np.int32)
        connected[0] += heard.sum()
        for number, graph in enumerate(graphs, start=1):
            heard = ((graph @ heard + heard) > 0).astype(np.int32)
            connected[number] += heard.sum()
    return np.diff(connected, prepend=0)


def _neighbours_linked(graph: csr_array) -> bool:
    def complete(offset: int) -> bool:
        found: Bool[np.ndarray, " pairs"] = graph.diagonal(offset) > 0
        return bool(found.all())

    return complete(-1) or complete(1)
