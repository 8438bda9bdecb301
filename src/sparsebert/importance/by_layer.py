"""Which layers and heads need what: from a pattern that has layers, and from the gate that it was frozen from."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import numpy as np

from sparsebert import gates
from sparsebert.gates import Structured
from sparsebert.patterns import Pattern

# Kinds of lines that a gate of distances has, off the border; the last one is all that is farther away.
KINDS_OF_LINES: Mapping[str, tuple[int, int | None]] = {
    "diagonal": (0, 1),
    "±1": (1, 2),
    "±2": (2, 3),
    "±3..5": (3, 6),
    "other": (6, None),
}


@dataclass(frozen=True)
class LayerNeeds:
    """What one layer keeps."""

    densities: tuple[float, ...]  # of its heads
    keeps_diagonal: float  # share of its heads that keep the diagonal, off the border
    log_odds: Mapping[str, float] | None = None  # by kind of line, mean over lines and heads; None: no gate

    @property
    def density(self) -> float:
        return fmean(self.densities)

    @property
    def diagonal_is_least(self) -> bool | None:
        """Whether the gate would rather keep any other kind of line."""
        if self.log_odds is None:
            return None
        return all(self.log_odds["diagonal"] < value for kind, value in self.log_odds.items() if kind != "diagonal")


def layer_needs(pattern: Pattern, gate: Structured | None = None) -> list[LayerNeeds]:
    """Of each layer, from the first on."""
    n = pattern.length
    densities: list[list[float]] = [[] for _ in range(pattern.layers)]
    diagonals: list[list[bool]] = [[] for _ in range(pattern.layers)]
    for layer, _, entries in pattern.each_head():
        rows, keys = entries // n, entries % n
        densities[layer].append(len(entries) / n**2)
        # Most of it: a pattern of single entries may keep some.
        on_diagonal = (rows == keys) & (rows > 0) & (rows < n - 1)
        diagonals[layer].append(bool(2 * on_diagonal.sum() > n - 2))
    odds = [None] * pattern.layers if gate is None else _log_odds(gate)
    return [
        LayerNeeds(tuple(each), fmean(kept), found)
        for each, kept, found in zip(densities, diagonals, odds, strict=True)
    ]


def _log_odds(gate: Structured) -> list[dict[str, float]]:
    lines = gate.lines
    logits = gate.logits().detach().double().cpu().numpy()[:, : lines.count]
    # A distance is as likely as the likelier of its offsets.
    distances = np.arange(lines.distances)
    both = np.maximum(logits[:, lines.unit_of(distances)], logits[:, lines.unit_of(-distances)])
    by_layer = both.reshape(gate.layers, gate.heads, -1)
    return [{kind: float(np.mean(one[:, slice(*ends)])) for kind, ends in KINDS_OF_LINES.items()} for one in by_layer]


def needs_of_search(folder: Path) -> list[LayerNeeds] | None:
    """Of a finished search whose pattern has layers; None: it has none, or left no pattern."""
    pattern_file, gate_file = folder / "pattern.safetensors", folder / "gate.safetensors"
    if not pattern_file.is_file():
        return None
    pattern = Pattern.load(pattern_file)
    if pattern.layers == 1:
        return None
    gate = gates.load(gate_file) if gate_file.is_file() else None
    fits = isinstance(gate, Structured) and (gate.layers, gate.heads) == (pattern.layers, pattern.heads)
    return layer_needs(pattern, gate if fits and isinstance(gate, Structured) else None)
