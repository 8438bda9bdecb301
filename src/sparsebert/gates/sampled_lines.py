"""The sparse path of a structured search: sampled lines as a pattern with a bias per kept entry, in O(kept).

Nothing here is n x n, so a search at thousands of positions costs what it keeps. A line that the sample leaves out
costs nothing, and would never be heard of again; so each step draws a few of them back in, at half weight, and
lets them say what they would bring.
"""

import numpy as np
import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from sparsebert.patterns import Anchor, Pattern

_EXPLORED_WEIGHT = 0.5


def line_entries(
    length: int, distances: Int64[np.ndarray, " lines"], border: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Keys in row order, keys per row, and the distance of each entry (-1 on the border) of one head."""
    offsets = np.concatenate([-distances[::-1], distances[distances > 0]])
    edge = 1 if border else 0
    rows = np.arange(edge, length - edge)
    columns = rows[:, None] + offsets
    valid = (columns >= edge) & (columns < length - edge)
    units = np.broadcast_to(np.abs(offsets), columns.shape)
    if not border:
        return columns[valid], valid.sum(1), units[valid]
    sides = np.ones((len(rows), 1), dtype=bool)
    valid = np.hstack([sides, valid, sides])
    columns = np.hstack([np.zeros_like(rows)[:, None], columns, np.full_like(rows, length - 1)[:, None]])
    units = np.hstack([np.full_like(rows, -1)[:, None], units, np.full_like(rows, -1)[:, None]])
    whole, outside = np.arange(length), np.full(length, -1)
    keys = np.concatenate([whole, columns[valid], whole])
    counts = np.concatenate([[length], valid.sum(1), [length]])
    return keys, counts, np.concatenate([outside, units[valid], outside])


def lines_pattern(
    length: int, keep: Bool[np.ndarray, "heads units"], border: bool, anchor: Anchor
) -> tuple[Pattern, Int64[np.ndarray, " kept"]]:
    """The pattern of the lines kept in each head, and for each of its entries head * (units + 1) + distance.

    Entries of the border get the number just behind a head's distances.
    """
    heads, units = keep.shape
    parts = [line_entries(length, np.flatnonzero(head), border) for head in keep]
    counts = np.stack([np.concatenate([[0], count]) for _, count, _ in parts]).astype(np.int64)
    starts = np.cumsum(counts.reshape(-1)).reshape(heads, length + 1)
    keys = np.concatenate([key for key, _, _ in parts]).astype(np.int32)
    places = [np.where(unit < 0, units, unit) + head * (units + 1) for head, (_, _, unit) in enumerate(parts)]
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
