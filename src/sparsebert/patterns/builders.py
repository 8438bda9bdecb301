"""Patterns to build others from: full, window, border, both, random, lists of offsets, an explicit tensor."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Union, cast

import numpy as np
from jaxtyping import Int32

from sparsebert import draws
from sparsebert.errors import PatternError
from sparsebert.memory import require_memory
from sparsebert.patterns.entries import (
    SIDES,
    Entries,
    border_entries,
    inside_entries,
    offset_entries,
    side_entries,
    union,
    window_entries,
)
from sparsebert.patterns.layers import per_layer
from sparsebert.patterns.pattern import Anchor, Pattern
from sparsebert.patterns.ranking import Ranking
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


def window_border(
    length: int,
    heads: int = 1,
    *,
    radius: int | None = None,
    sparsity: float | None = None,
    keys: float | None = None,
) -> Pattern:
    """A window inside the border: what a learned pattern has to beat.

    radius: 4 unless told. In its place sparsity, or keys (the mean number a query) take the radius that comes nearest.
    """
    if sum(given is not None for given in (radius, sparsity, keys)) > 1:
        raise PatternError("window_border takes one of radius, sparsity and keys; leave the others out")
    check_size("window_border", length, heads)
    if sparsity is not None or keys is not None:
        radius = _nearest_radius(length, sparsity, keys)
    reach = at_least("window_border", "radius", 4 if radius is None else radius, 0)
    require_room("window_border", length, heads, lambda: length * min(2 * reach + 5, length))
    pieces = lambda: union([window_entries(length, reach), border_entries(length)])  # noqa: E731
    return same_heads("window_border", length, heads, pieces, radius=reach)


def _nearest_radius(length: int, sparsity: float | None, keys: float | None) -> int:
    """Of a window inside the border, by its share of all entries or its keys a query."""
    if sparsity is not None and not fits(sparsity, Share):
        raise PatternError(f"window_border was given sparsity={sparsity!r}; it must lie between 0 and 1")
    if keys is not None and not fits(keys, Annotated[float, Range(1, length)]):
        raise PatternError(f"window_border was given keys={keys!r}; expected 1 to {length}, the length")
    wanted = (1.0 - sparsity if sparsity is not None else (keys or 0.0) / length) * length**2
    inner = max(length - 2, 0)
    lines = np.where(np.arange(max(inner, 1)) == 0, 1, 2) * (inner - np.arange(max(inner, 1)))
    kept = length**2 - inner**2 + np.cumsum(lines)
    if kept[0] - wanted > 0.005 * length**2:
        raise PatternError(
            f"window_border keeps at least the border and the diagonal, {kept[0] / length:.1f} keys a query at length "
            f"{length}; ask for at least as many, or a sparsity of at most {1 - kept[0] / length**2:.4f}"
        )
    return int(np.abs(kept - wanted).argmin())


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


Offsets = Sequence[Sequence[int]]  # a list of j - i for every head
Sides = Sequence[Sequence[str]]  # a list of left, right, top and bottom for every head


def from_offsets(
    length: int,
    offsets: Offsets | Sequence[Offsets],
    *,
    border: bool = False,
    sides: Sides | Sequence[Sides] | None = None,
    anchor: Anchor = "position",
) -> Pattern:
    """Lines parallel to the diagonal: a list of j - i per head (or such lists per layer), with or without the border.

    An offset that reaches past the length keeps nothing there, so one list serves every length. sides: for every head
    the sides of the border it keeps (left: everyone sees the first token; top: the first token sees everyone; right
    and bottom: the last token); the lines then lie inside the border.
    """
    if any(isinstance(line, Sequence | np.ndarray) for head in offsets for line in head):
        layers = cast(Sequence[Offsets], offsets)
        edges: Sequence[Any] = [None] * len(layers) if sides is None else sides
        each = zip(layers, edges, strict=True)
        return per_layer([from_offsets(length, one, border=border, sides=edge, anchor=anchor) for one, edge in each])
    check_size("from_offsets", length, len(offsets))
    lines = [sorted({int(offset) for offset in head}) for head in cast(Offsets, offsets)]
    arguments: dict[str, Any] = {"offsets": lines, "border": border}
    if sides is None:
        edge = [border_entries(length)] if border else []
        entries = [union([*edge, *_lines(length, head, offset_entries)]) for head in lines]
    else:
        kept = _checked_sides(cast(Sides, sides), len(lines), border)
        arguments |= {"sides": kept}
        edges_of = [[side_entries(length, side) for side in head] for head in kept]
        entries = [
            union([*edge, *_lines(length, head, inside_entries)]) for head, edge in zip(lines, edges_of, strict=True)
        ]
    rule = {"builder": "from_offsets", "heads": len(lines), "arguments": arguments}
    return Pattern.from_entries(length, entries, anchor=anchor, rule=rule)


def _lines(length: int, offsets: Sequence[int], line: Callable[[int, int], Entries]) -> list[Entries]:
    return [line(length, offset) for offset in offsets if abs(offset) < length]


def _checked_sides(sides: Sides, heads: int, border: bool) -> list[list[str]]:
    found = [list(head) for head in sides]
    if border or len(found) != heads or any(side not in SIDES for head in found for side in head):
        raise PatternError(
            f"from_offsets was given sides={found!r} for {heads} heads and border={border}; expected a list a head of "
            f"{', '.join(SIDES)}, and border left out"
        )
    return [[side for side in SIDES if side in head] for head in found]


def from_ranking(
    length: int,
    heads: int,
    layers: int,
    ranking: Ranking | np.ndarray | Sequence[Sequence[int]],
    *,
    sparsity: float,
    border: bool = True,
    anchor: Anchor = "position",
) -> Pattern:
    """The first lines of a ranking, as many as come nearest to a sparsity; the pattern carries the ranking.

    ranking: (layer, head, distance) in order of worth; a distance stands for both lines j - i = ±distance, and -1 to
    -4 for the sides of the border: left, right, top, bottom. border: lines lie inside it, and where the ranking names
    none of its sides it is kept in any case. A Ranking says so itself.
    """
    check_size("from_ranking", length, heads)
    at_least("from_ranking", "layers", layers, 1)
    ranked = ranking if isinstance(ranking, Ranking) else Ranking(_as_units(ranking), border)
    arguments = ranked.arguments(sparsity, length, layers, heads)
    return replace(per_layer([from_offsets(length, **one, anchor=anchor) for one in arguments]), ranking=ranked)


def _as_units(ranking: np.ndarray | Sequence[Sequence[int]]) -> Int32[np.ndarray, "units 3"]:
    found = np.asarray(ranking)
    if found.size == 0:
        return np.zeros((0, 3), np.int32)
    if not np.issubdtype(found.dtype, np.integer) or abs(found).max() >= 2**31:
        raise PatternError(f"a ranking holds {found.dtype}; expected whole numbers: layer, head and distance")
    return found.astype(np.int32)


def from_keep(keep: Union["Tensor", np.ndarray], *, anchor: Anchor = "position") -> Pattern:
    """An explicit bool tensor [heads, n, n], [n, n] for one head, or [layers, heads, n, n]."""
    array = keep if isinstance(keep, np.ndarray) else keep.detach().cpu().numpy()
    shape = tuple(array.shape)
    array = array[None] if array.ndim == 2 else array
    if array.dtype != bool or array.ndim not in (3, 4) or array.shape[-1] != array.shape[-2] or 0 in array.shape:
        raise PatternError(f"keep is {array.dtype} of shape {shape}; expected bool [heads, n, n]")
    length, layers = array.shape[-1], array.shape[0] if array.ndim == 4 else 1
    heads = [np.flatnonzero(head).astype(np.int64) for head in array.reshape(-1, length, length)]
    return Pattern.from_entries(length, heads, anchor=anchor, layers=layers)
