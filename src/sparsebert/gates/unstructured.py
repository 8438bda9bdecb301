"""One learned gate per entry: soft (the importance analysis) or sampled (DAM_u)."""

from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn

from sparsebert.attention import AttentionArguments
from sparsebert.gates.gate import Gate
from sparsebert.gates.sizes import require_room
from sparsebert.patterns import Pattern, from_keep
from sparsebert.patterns.entries import Entries


class Unstructured(Gate):
    """A value per entry; symmetric by default, so that i to j and j to i are one.

    Single entries see little evidence. With settings.pooled the log-odds of an entry are those of its distance plus
    those of its two positions, all shared, plus a term of its own that may learn more slowly (settings.entry_share of
    the rate): entries start from what lines and positions have in common and depart from it where they must.
    """

    rows: Tensor
    columns: Tensor
    unit_of: Tensor

    def lay_out_units(self) -> Int64[np.ndarray, " units"]:
        length, heads, symmetric = self.length, self.all_heads, self.settings.symmetric
        # Indices of the entries; alpha with its gradient and AdamW's moments; one sample.
        require_room(length**2 * (16 + 12.0 * heads), f"a value for each of {heads} x {length} x {length} entries")
        self.shared = nn.ParameterDict()
        if self.settings.pooled:
            sizes = dict.fromkeys(["position"] if symmetric else ["query", "key"], length)
            sizes |= {"offset": 2 * length - 1} if self._directed else {"distance": length}
            self.shared = nn.ParameterDict({name: torch.zeros(heads, size) for name, size in sizes.items()})
        rows, columns = np.triu_indices(length) if symmetric else np.indices((length, length)).reshape(2, -1)
        unit_of = np.empty((length, length), dtype=np.int64)
        unit_of[rows, columns] = np.arange(len(rows))
        if symmetric:
            unit_of[columns, rows] = np.arange(len(rows))
        self.register_buffer("rows", torch.from_numpy(rows), persistent=False)
        self.register_buffer("columns", torch.from_numpy(columns), persistent=False)
        self.register_buffer("unit_of", torch.from_numpy(unit_of.reshape(-1)), persistent=False)
        return np.bincount(unit_of.reshape(-1))

    @property
    def _directed(self) -> bool:
        """Whether what entries before the diagonal share is apart from what those behind it do."""
        return self.settings.directed and not self.settings.symmetric

    @property
    def fixed(self) -> int:
        return 0

    @property
    def on_diagonal(self) -> Bool[np.ndarray, " units"]:
        return np.asarray((self.rows == self.columns).cpu())

    def logits(self) -> Float[Tensor, "all_heads units"]:
        if not self.settings.pooled:
            return self.alpha
        if self.settings.symmetric:
            positions, distances = self.shared["position"], (self.columns - self.rows).abs()
            shared = self.shared["distance"].index_select(1, distances) + positions.index_select(1, self.rows)
            logits: Tensor = self.alpha + shared + positions.index_select(1, self.columns)
            return logits
        offsets = self.shared["offset"] if self._directed else _of_offsets(self.shared["distance"])
        # Each query's keys, one offset on from row to row: no index of n² places, whose gradient is slow to add up.
        logits = offsets.unfold(1, self.length, 1).flip(1)
        for part in (self.alpha.view_as(logits), self.shared["query"][:, :, None], self.shared["key"][:, None, :]):
            logits += part  # in its own memory: fresh memory costs more than the sum
        return logits.flatten(1)

    def spread(self, units: Float[Tensor, "all_heads units"]) -> Float[Tensor, "all_heads n n"]:
        if not self.settings.symmetric:  # units are all entries in order
            return units.view(-1, self.length, self.length)
        return units.index_select(1, self.unit_of).view(-1, self.length, self.length)

    def pattern_of(self, keep: Bool[np.ndarray, "all_heads units"]) -> Pattern:
        shape = (self.layers, self.heads, self.length, self.length)
        dense = keep[:, self.unit_of.cpu().numpy()].reshape(shape if self.layers > 1 else shape[1:])
        return from_keep(dense, anchor=self.anchor)

    def attention_arguments(self, pattern: Pattern | None, layer: int) -> AttentionArguments:
        return self.dense_arguments(pattern, layer)

    def units_of(self, entries: Entries) -> Int64[np.ndarray, " entries"]:
        return np.take(self.unit_of.cpu().numpy(), entries)

    def parameter_groups(self, weights_rate: float) -> list[dict[str, Any]]:
        if not self.settings.pooled:
            return [self.alpha_group([self.alpha], weights_rate)]
        return [
            self.alpha_group([self.alpha], weights_rate, self.settings.entry_share),
            self.alpha_group(list(self.shared.values()), weights_rate),
        ]


def _of_offsets(distances: Float[Tensor, "heads n"]) -> Float[Tensor, "heads offsets"]:
    """What a distance shares, for every offset from 1 - n to n - 1."""
    return torch.cat([distances.flip(1)[:, :-1], distances], dim=1)


class Soft(Unstructured):
    """P = sigmoid(alpha), one value per entry and no noise: the importance analysis (Section 3.1)."""

    def __init__(self, length: int, heads: int, **arguments: Any) -> None:
        arguments = {"pooled": False, "rate": 2e-2, **arguments, "sampling": "mean"}
        super().__init__(length, heads, **arguments)
