"""Patterns to build others from: full, window, border, random, lists of offsets, an explicit tensor."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Union

import numpy as np

from sparsebert import draws
from sparsebert.errors import PatternError
from sparsebert.memory import require_memory
from sparsebert.patterns.entries import Entries, border_entries, offset_entries, union, window_entries
from sparsebert.patterns.pattern import Anchor, Pattern
from sparsebert.settings import Count, Range, Share, fits

if TYPE_CHECKING:
    from torch import Tensor


def same_heads(builder: str, length: int, heads: int, entries: Callable[[], Entries], **arguments: Any) -> Pattern:
    """A pattern whose heads are all alike, with the rule that rebuilds it."""
    check_size(builder, length, heads)
    one = entries()
    _require_heads(builder, length, heads, len(one))
    rule = {"builder": builder, "heads": heads, "arguments": arguments}
    return Pattern.from_entries(length, [one] * heads, rule=rule)


def drawn_heads(
    builder: str,
    length: int,
    heads: int,
    seed: int,
    entries: Callable[[np.random.Generator], Entries],
    **arguments: Any,
) -> Pattern:
    """A pattern whose heads are drawn apart, with the rule that rebuilds it."""
    check_size(builder, length, heads)

    def draw(head: int) -> Entries:
        return entries(draws.generator(seed, f"patterns/{builder}", row=head))

    _require_heads(builder, length, heads, len(draw(0)) if heads > 1 else 0)
    drawn = [draw(head) for head in range(heads)]
    rule = {"builder": builder, "heads": heads, "arguments": {"seed": seed, **arguments}}
    return Pattern.from_entries(length, drawn, rule=rule)


def check_size(builder: str, length: int, heads: int) -> None:
    if not fits(length, Count) or not fits(heads, Count):
        raise PatternError(f"{builder} was asked for length {length} and {heads} heads; both must be at least 1")


def at_least(builder: str, name: str, value: int, least: int) -> int:
    if not fits(value, Annotated[int, Range(least)]):
        raise PatternError(f"{builder} was given {name}={value!r}; it must be a whole number of at least {least}")
    return value


def require_room(builder: str, length: int, heads: int, entries: Callable[[], float]) -> None:
    """Called before a builder makes so many entries of one head, each a number of eight bytes."""
    check_size(builder, length, heads)
    what = f"{builder} of length {length}, {entries():,.0f} entries a head while it is built,"
    require_memory(8.0 * entries(), what, "choose a shorter length, or a sparser pattern", PatternError)


def _require_heads(builder: str, length: int, heads: int, entries: int) -> None:
    """What a pattern holds in the end: where each row starts, and the keys."""
    what = f"{builder} of length {length} with {heads} heads"
    require_memory(heads * (8.0 * length + 4.0 * entries), what, "choose fewer heads", PatternError)


def full(length: int, heads: int = 1) -> Pattern:
    """Everyone attends to everyone."""
    require_room("full", length, heads, lambda: length**2)
    return same_heads("full", length, heads, lambda: np.arange(length**2, dtype=np.int64))


def window(length: int, heads: int = 1, *, radius: int = 1) -> Pattern:
    """Neighbours up to `radius` tokens away, and oneself."""
    at_least("window", "radius", radius, 0)
    require_room("window", length, heads, lambda: length * min(2 * radius + 1, length))
    return same_heads("window", length, heads, lambda: window_entries(length, radius), radius=radius)


def border(length: int, heads: int = 1) -> Pattern:
    """First and last row and column: the special tokens see all and are seen by all."""
    return same_heads("border", length, heads, lambda: border_entries(length))


def random(length: int, heads: int = 1, *, sparsity: float = 0.9, seed: int = 0) -> Pattern:
    """Entries drawn evenly, exactly as many a head as the sparsity asks for."""
    if not fits(sparsity, Share):
        raise PatternError(f"random was given sparsity={sparsity!r}; it must lie between 0 and 1")
    check_size("random", length, heads)
    total = length**2
    count = round((1.0 - sparsity) * total)
    # numpy draws more than a fiftieth by shuffling all of them.
    require_room("random", length, heads, lambda: total if count > total // 50 else count)

    def draw(generator: np.random.Generator) -> Entries:
        return np.sort(generator.choice(total, count, replace=False, shuffle=False).astype(np.int64))

    return drawn_heads("random", length, heads, seed, draw, sparsity=sparsity)


def from_offsets(
    length: int, offsets: Sequence[Sequence[int]], *, border: bool = False, anchor: Anchor = "position"
) -> Pattern:
    """Lines parallel to the diagonal: a list of j - i per head, with or without the border.

    An offset that reaches past the length keeps nothing there, so one list serves every length.
    """
    check_size("from_offsets", length, len(offsets))
    edge = [border_entries(length)] if border else []

    def one_head(line_offsets: Sequence[int]) -> Entries:
        return union([*edge, *(offset_entries(length, offset) for offset in line_offsets if abs(offset) < length)])

    lines = [sorted({int(offset) for offset in head}) for head in offsets]
    rule = {"builder": "from_offsets", "heads": len(lines), "arguments": {"offsets": lines, "border": border}}
    return Pattern.from_entries(length, [one_head(head) for head in lines], anchor=anchor, rule=rule)


def from_keep(keep: Union["Tensor", np.ndarray], *, anchor: Anchor = "position") -> Pattern:
    """An explicit bool tensor [heads, n, n] (or [n, n] for one head)."""
    array = keep if isinstance(keep, np.ndarray) else keep.detach().cpu().numpy()
    array = array[None] if array.ndim == 2 else array
    if array.dtype != bool or array.ndim != 3 or array.shape[1] != array.shape[2] or 0 in array.shape:
        raise PatternError(f"keep is {array.dtype} of shape {tuple(array.shape)}; expected bool [heads, n, n]")
    length = array.shape[1]
    return Pattern.from_entries(length, [np.flatnonzero(head).astype(np.int64) for head in array], anchor=anchor)
