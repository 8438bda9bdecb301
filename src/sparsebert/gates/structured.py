"""One learned gate per head and distance |i - j| (DAM_s)."""

from functools import lru_cache
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from sparsebert import draws
from sparsebert.attention import AttentionArguments
from sparsebert.errors import GateError
from sparsebert.gates.gate import Gate, require_room
from sparsebert.gates.sampled_lines import explored, lines_pattern, lines_within
from sparsebert.patterns import Pattern, from_offsets
from sparsebert.patterns.entries import Entries

_LONGEST_DENSE = 256  # positions; beyond it only the sampled lines are ever held


class Structured(Gate):
    """n - 2 values a head, the distances 0 to n - 3 inside the border, which is always kept.

    Both Gumbel noises of a sample are shared along a line, so a line is kept or dropped as a whole, and the frozen
    pattern is a list of offsets that can be rebuilt at any length. Distance 0 is learned like the others: whether a
    token needs itself is the question.
    """

    @property
    def is_sparse(self) -> bool:
        """Whether only the sampled lines are held."""
        return self.settings.path == "sparse" or (self.settings.path == "auto" and self.length > _LONGEST_DENSE)

    def lay_out_units(self) -> Int64[np.ndarray, " units"]:
        if self.is_sparse and self.relaxation == "multiplicative":
            raise GateError("the sparse path has a bias per entry; choose relaxation='log' or 'additive' for it")
        share = self.settings.initial_density if self.is_sparse else 1.0
        # A key and a bias of every entry that the first sample keeps.
        entries = f"{share:.0%} of {self.heads} x {self.length} x {self.length} entries"
        require_room(8.0 * share * self.heads * self.length**2, entries)
        inside = self.length - 2 if self.settings.border else self.length
        units = np.arange(inside)
        return np.where(units == 0, 1, 2) * (inside - units)

    @property
    def fixed(self) -> int:
        return 4 * self.length - 4 if self.settings.border else 0

    @property
    def on_diagonal(self) -> Bool[np.ndarray, " units"]:
        return np.asarray(np.arange(len(self.sizes)) == 0)

    def logits(self) -> Float[Tensor, "heads units"]:
        return self.alpha

    def spread(self, units: Float[Tensor, "heads units"]) -> Float[Tensor, "heads n n"]:
        distances, border = _places(self.length, len(self.sizes), units.device)
        lines = units.index_select(1, distances).view(self.heads, self.length, self.length)
        return lines.masked_fill(border, 1.0) if self.settings.border else lines

    def attention_arguments(self, pattern: Pattern | None, layer: int) -> AttentionArguments:
        if not self.is_sparse:
            return self.dense_arguments(pattern)
        return self.cached(("lines", pattern), lambda: self._sampled_lines(pattern))

    def units_of(self, entries: Entries) -> Int64[np.ndarray, " entries"]:
        rows, columns = np.divmod(entries, self.length)
        last = self.length - 1
        on_border = (rows == 0) | (rows == last) | (columns == 0) | (columns == last)
        return np.where(on_border & self.settings.border, -1, np.abs(rows - columns))

    def pattern_of(self, keep: Bool[np.ndarray, "heads units"]) -> Pattern:
        distances = [np.flatnonzero(head).tolist() for head in keep]
        offsets = [sorted({sign * distance for distance in head for sign in (-1, 1)}) for head in distances]
        return from_offsets(self.length, offsets, border=self.settings.border, anchor=self.anchor)

    def parameter_groups(self, weights_rate: float) -> list[dict[str, Any]]:
        return [self.alpha_group([self.alpha], weights_rate)]

    def _sampled_lines(self, within: Pattern | None) -> AttentionArguments:
        """The lines of this sample, as far as they lie within a pattern, as a pattern with their values as a bias."""
        units = self.units()
        chance = self.settings.explore if self.training else 0.0
        seed, step, micro = self.drawn_at
        draw = draws.generator(seed, "gates/explore", step, max(micro, 0)).random(tuple(units.shape))
        keep, weights = explored(units, draw, chance)
        pattern, places = lines_pattern(self.length, keep, self.settings.border, self.anchor)
        if within is not None:
            pattern, places = lines_within(pattern, places, within)
        bias = weights.clamp(min=1e-30).log() if self.relaxation == "log" else -self.c * (1 - weights)
        table = torch.cat([bias, bias.new_zeros(self.heads, 1)], dim=1).view(-1)
        return AttentionArguments(pattern, bias=table.index_select(0, torch.from_numpy(places).to(table.device)))


@lru_cache(maxsize=8)
def _places(length: int, units: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """The unit of every entry, and which entries are the border."""
    places = torch.arange(length, device=device)
    inside = (places > 0) & (places < length - 1)
    # Distances that only the border has stand for no unit; any index serves, for the border is filled with ones.
    distances = (places[:, None] - places).abs().clamp(max=units - 1)
    return distances.view(-1), ~(inside[:, None] & inside)
