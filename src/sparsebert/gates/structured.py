"""One learned gate per head and distance |i - j| (DAM_s), or per offset j - i."""

from functools import lru_cache
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from sparsebert import draws
from sparsebert.attention import AttentionArguments
from sparsebert.errors import GateError
from sparsebert.gates.gate import Gate
from sparsebert.gates.learned_lines import LearnedLines
from sparsebert.gates.sampled_lines import Border, explored, lines_pattern, lines_within
from sparsebert.gates.sizes import require_room
from sparsebert.patterns import Pattern, Ranking, from_offsets
from sparsebert.patterns.entries import SIDES, Entries
from sparsebert.patterns.ranking import SIDE_CODES, code_of

_LONGEST_DENSE = 256  # positions; beyond it only the sampled lines are ever held


class Structured(Gate):
    """n - 2 values a head, the distances 0 to n - 3 inside the border, which is always kept.

    Both Gumbel noises of a sample are shared along a line, so a line is kept or dropped as a whole, and the frozen
    pattern is a list of offsets that can be rebuilt at any length. Distance 0 is learned like the others: whether a
    token needs itself is the question. With settings.learned_border so are the four sides of the border, units behind
    the distances in order of SIDES: at high sparsity they would take most of the budget, and few heads need them all.
    With settings.directed a head may look ahead and not back: each offset is a unit of its own.
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
        entries = f"{share:.0%} of {self.all_heads} x {self.length} x {self.length} entries"
        require_room(8.0 * share * self.all_heads * self.length**2, entries)
        sides = [self.length, self.length, self.length - 2, self.length - 2] if self.settings.learned_border else []
        return np.concatenate([self.lines.sizes(), np.array(sides, dtype=np.int64)])

    @property
    def lines(self) -> LearnedLines:
        """What is learned beside sides of the border: the first units."""
        return LearnedLines(self.length - 2 if self.settings.border else self.length, self.settings.directed)

    @property
    def fixed(self) -> int:
        return 4 * self.length - 4 if self.settings.border and not self.settings.learned_border else 0

    @property
    def on_diagonal(self) -> Bool[np.ndarray, " units"]:
        return np.asarray(np.arange(len(self.sizes)) == 0)

    def logits(self) -> Float[Tensor, "all_heads units"]:
        return self.alpha

    def spread(self, units: Float[Tensor, "all_heads units"]) -> Float[Tensor, "all_heads n n"]:
        places, border = _places(self.length, self.lines, self.settings.learned_border, units.device)
        lines = units.index_select(1, places).view(-1, self.length, self.length)
        return lines.masked_fill(border, 1.0) if self.fixed else lines

    def attention_arguments(self, pattern: Pattern | None, layer: int) -> AttentionArguments:
        if not self.is_sparse:
            return self.dense_arguments(pattern, layer)
        layer = layer if self.layers > 1 else 0
        return self.cached(("lines", pattern, layer), lambda: self._sampled_lines(pattern, layer))

    def units_of(self, entries: Entries) -> Int64[np.ndarray, " entries"]:
        rows, columns = np.divmod(entries, self.length)
        found = self.lines.unit_of(columns - rows)
        if self.settings.border:
            side = np.select(
                [columns == 0, columns == self.length - 1, rows == 0, rows == self.length - 1], range(4), -1
            )
            found = np.where(side < 0, found, self.lines.count + side if self.settings.learned_border else -1)
        return np.asarray(found)

    def pattern_of(self, keep: Bool[np.ndarray, "all_heads units"]) -> Pattern:
        lines, sides = keep[:, : self.lines.count], keep[:, self.lines.count :]
        offsets = [self.lines.kept(head).tolist() for head in lines]
        border: dict[str, Any] = {"border": self.settings.border}
        if self.settings.learned_border:
            border = {"sides": self._by_layer([[SIDES[side] for side in np.flatnonzero(head)] for head in sides])}
        return from_offsets(self.length, self._by_layer(offsets), **border, anchor=self.anchor)

    def _by_layer(self, heads: list[Any]) -> list[Any]:
        """What there is of every head, in a list a layer where layers differ."""
        if self.layers == 1:
            return heads
        return [heads[first : first + self.heads] for first in range(0, len(heads), self.heads)]

    def ranking(self) -> Ranking:
        """All units in the order of their log-odds: what a denser pattern would keep next."""
        order = np.argsort(-self.logits().detach().double().cpu().numpy().reshape(-1), kind="stable")
        heads, units = np.divmod(order, len(self.sizes))
        codes = np.concatenate([code_of(self.lines.first_offsets), SIDE_CODES])[units]
        rows = np.stack([heads // self.heads, heads % self.heads, codes], axis=1)
        return Ranking(rows.astype(np.int32), self.settings.border, self.settings.directed)

    def parameter_groups(self, weights_rate: float) -> list[dict[str, Any]]:
        return [self.alpha_group([self.alpha], weights_rate)]

    def _sampled_lines(self, within: Pattern | None, layer: int) -> AttentionArguments:
        """A layer's lines of this sample, as far as they lie within a pattern, and their values as a bias."""
        units = self.of_layer("units", self.units(), layer)
        chance = self.settings.explore if self.training else 0.0
        seed, step, micro = self.drawn_at
        draw = draws.generator(seed, "gates/explore", step, max(micro, 0)).random((self.all_heads, len(self.sizes)))
        keep, weights = explored(units, draw[layer * self.heads : (layer + 1) * self.heads], chance)
        border: Border = "learned" if self.settings.learned_border else self.settings.border
        pattern, places = lines_pattern(self.length, self.lines, keep, border, self.anchor)
        if within is not None:
            pattern, places = lines_within(pattern, places, within)
        bias = weights.clamp(min=1e-30).log() if self.relaxation == "log" else -self.c * (1 - weights)
        table = torch.cat([bias, bias.new_zeros(self.heads, 1)], dim=1).view(-1)
        return AttentionArguments(pattern, bias=table.index_select(0, torch.from_numpy(places).to(table.device)))


@lru_cache(maxsize=8)
def _places(length: int, lines: LearnedLines, learned_border: bool, device: torch.device) -> tuple[Tensor, Tensor]:
    """The unit of every entry, and which entries are the border."""
    places = torch.arange(length, device=device)
    inside = (places > 0) & (places < length - 1)
    # Distances that only the border has stand for no unit; any index serves, for the border is filled with ones.
    furthest = lines.distances - 1
    offsets = (places - places[:, None]).clamp(-furthest, furthest)
    units = torch.from_numpy(lines.units).to(device)[offsets + furthest]
    if learned_border:
        left = lines.count
        units[0], units[-1], units[:, 0], units[:, -1] = left + 2, left + 3, left, left + 1
    return units.view(-1), ~(inside[:, None] & inside)
