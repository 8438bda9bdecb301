"""The sparse path of a structured search: sampled lines as a pattern with a bias per kept entry, in O(kept).

Nothing here is n x n, so a search at thousands of positions costs what it keeps. A line that the sample leaves out
costs nothing, and would never be heard of again; so each step draws a few of them back in, at half weight, and
lets them say what they would bring.
"""

from typing import Literal

import numpy as np
import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from sparsebert.gates.learned_lines import LearnedLines
from sparsebert.patterns import Anchor, Pattern

_EXPLORED_WEIGHT = 0.5


Border = bool | Literal["learned"]  # kept whatever is sampled, none, or sides that are units behind the distances


def line_entries(
    length: int,
    lines: LearnedLines,
    keep: Bool[np.ndarray, " lines"],
    border: bool,
    sides: tuple[bool, ...] = (True,) * 4,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Keys in row order, keys per row, and the unit of each entry of one head; -1 - side on a side of the border.

    sides: which of left, right, top and bottom there are, where there is a border.
    """
    offsets = lines.kept(keep)
    edge = 1 if border else 0
    rows = np.arange(edge, length - edge)
    columns = rows[:, None] + offsets
    valid = (columns >= edge) & (columns < length - edge)
    units = np.broadcast_to(lines.unit_of(offsets), columns.shape)
    if not border:
        return columns[valid], valid.sum(1), units[valid]
    left, right = np.full((len(rows), 1), sides[0]), np.full((len(rows), 1), sides[1])
    valid = np.hstack([left, valid, right])
    columns = np.hstack([np.zeros_like(rows)[:, None], columns, np.full_like(rows, length - 1)[:, None]])
    units = np.hstack([np.full_like(rows, -1)[:, None], units, np.full_like(rows, -2)[:, None]])
    ends = []
    for side in (2, 3):
        there = np.concatenate([[sides[0]], np.full(length - 2, sides[side]), [sides[1]]])
        ends.append((np.flatnonzero(there), np.array([-1, *[-1 - side] * (length - 2), -2])[there]))
    (first, first_units), (last, last_units) = ends
    keys = np.concatenate([first, columns[valid], last])
    counts = np.concatenate([[len(first)], valid.sum(1), [len(last)]])
    return keys, counts, np.concatenate([first_units, units[valid], last_units])


def lines_pattern(
    length: int, lines: LearnedLines, keep: Bool[np.ndarray, "heads units"], border: Border, anchor: Anchor
) -> tuple[Pattern, Int64[np.ndarray, " kept"]]:
    """The pattern of the lines kept in each head, and for each of its entries head * (units + 1) + unit.

    Entries that are kept whatever is sampled get the number just behind a head's units.
    """
    heads, units = keep.shape
    every = (True,) * 4
    parts = [
        line_entries(
            length,
            lines,
            head[: lines.count],
            bool(border),
            tuple(head[lines.count :].tolist()) if border == "learned" else every,
        )
        for head in keep
    ]
    counts = np.stack([np.concatenate([[0], count]) for _, count, _ in parts]).astype(np.int64)
    starts = np.cumsum(counts.reshape(-1)).reshape(heads, length + 1)
    keys = np.concatenate([key for key, _, _ in parts]).astype(np.int32)
    places = []
    for head, (_, _, unit) in enumerate(parts):
        side = lines.count - 1 - unit if border == "learned" else units
        places.append(np.where(unit < 0, side, unit) + head * (units + 1))
    return Pattern(heads, length, starts, keys, anchor), np.concatenate(places)


def lines_within(
    pattern: Pattern, places: Int64[np.ndarray, " kept"], within: Pattern
) -> tuple[Pattern, Int64[np.ndarray, " kept_within"]]:
    """What of lines_pattern() lies within another pattern."""
    entries = [pattern.entries(head) for head in range(pattern.heads)]
    inside = [np.isin(one, within.entries(head % within.heads)) for head, one in enumerate(entries)]
    kept = [one[chosen] for one, chosen in zip(entries, inside, strict=True)]
    return Pattern.from_entries(pattern.length, kept, anchor=pattern.anchor), places[np.concatenate(inside)]


def explored(
    units: Float[Tensor, "heads units"], draw: Float[np.ndarray, "heads units"], chance: float
) -> tuple[Bool[np.ndarray, "heads units"], Float[Tensor, "heads units"]]:
    """Which lines run this step, and their values: what is on, and a few that are off, raised to half weight."""
    sampled = units.detach().cpu().numpy()
    on = sampled > 0.5
    keep = on | (draw < chance)
    back = torch.from_numpy(keep & ~on).to(units.device)
    # In log P the raise is a constant, so the gradient is that of the line's own value.
    raised = units.clamp(min=1e-30)
    raised = raised * (_EXPLORED_WEIGHT / raised.detach())
    return keep, torch.where(back, raised, units)
