"""Pattern: a frozen decision which query may attend to which key, per head and, if it has several, per layer (M)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

import numpy as np
from jaxtyping import Bool, Int32, Int64

from sparsebert import draws
from sparsebert.errors import PatternError
from sparsebert.patterns.entries import Entries, compress, expand, offset_entries, union
from sparsebert.patterns.layers import by_layer, split
from sparsebert.patterns.pictures import html, picture
from sparsebert.patterns.ranking import Ranking
from sparsebert.patterns.storage import load, save

if TYPE_CHECKING:
    from torch import Tensor

Anchor = Literal["position", "token"]
Rule = dict[str, Any]


@dataclass(frozen=True, eq=False, repr=False)
class Pattern:
    """Kept entries as compressed rows, with the rule they can be rebuilt from at another length.

    `anchor` says where the last row and column sit in an input shorter than the pattern: at position n - 1, and so
    outside ("position", the paper), or at the input's true last token ("token").

    `layers` is 1 where one pattern serves all layers, as in the paper. With more, every layer has heads of its own,
    and attention is handed one layer at a time: `pattern.layer(i)`.
    """

    heads: int  # of each layer
    length: int
    # Head h of layer l is row l * heads + h; the keys of its query i are keys[row_starts[row, i]:row_starts[row, i+1]].
    row_starts: Int64[np.ndarray, "heads starts"]
    keys: Int32[np.ndarray, " kept"]
    anchor: Anchor = "position"
    rule: Rule | None = None
    layers: int = 1
    ranking: Ranking | None = None  # in which order its lines are worth keeping; decides nothing by itself
    # rules.rebuild, which the package hands over: rules name builders, and builders make patterns.
    rebuilt: ClassVar[Callable[[Rule, int], Pattern]]

    def __post_init__(self) -> None:
        if self.layers < 1:
            raise PatternError(f"a pattern of {self.layers} layers cannot be; it has at least 1")
        if self.layers > 1 and self.rule is not None and len(_rules_of_layers(self.rule)) != self.layers:
            raise PatternError(f"the rule of a pattern of {self.layers} layers must be an operation on as many rules")
        check_rows(self.layers * self.heads, self.length, self.row_starts, self.keys)
        if self.anchor not in get_args(Anchor):
            raise PatternError(f"anchor is {self.anchor!r}; expected 'position' or 'token'")
        if self.ranking is not None:
            self.ranking.check(self.layers, self.heads)
        self.row_starts.setflags(write=False)
        self.keys.setflags(write=False)

    @classmethod
    def from_entries(
        cls,
        length: int,
        heads: Iterable[Entries],
        *,
        anchor: Anchor = "position",
        rule: Rule | None = None,
        layers: int = 1,
    ) -> Pattern:
        """From the sorted flat entries of each head; with several layers those of the first, then of the second ..."""
        row_starts, keys = compress(length, heads)
        return cls(len(row_starts) // layers, length, row_starts, keys, anchor, rule, layers)

    # What it keeps

    @property
    def kept(self) -> int:
        """Number of kept entries over all layers and heads."""
        return len(self.keys)

    @property
    def sparsity(self) -> float:
        """1 - kept / n², over all layers and heads."""
        return 1.0 - self.kept / (len(self.row_starts) * self.length**2)

    @property
    def density(self) -> float:
        return self.kept / (len(self.row_starts) * self.length**2)

    @property
    def keys_per_query(self) -> float:
        """Keys that a query attends to, the border's among them: the mean over queries, heads and layers."""
        return self.kept / (len(self.row_starts) * self.length)

    def entries(self, head: int = 0, layer: int = 0) -> Entries:
        """Sorted flat entries i * n + j of one head."""
        return expand(self.length, self.row_starts[layer * self.heads + head], self.keys)

    def each_head(self) -> Iterator[tuple[int, int, Entries]]:
        """Layer, head and entries of every head."""
        for row in range(len(self.row_starts)):
            layer, head = divmod(row, self.heads)
            yield layer, head, self.entries(head, layer)

    def keep(self) -> Bool[Tensor, "*layers heads queries keys"]:
        """The dense picture as a bool tensor, heads x n² bytes a layer; without a dimension for one layer."""
        import torch

        flat = np.zeros((len(self.row_starts), self.length**2), dtype=bool)
        for row, (_, _, entries) in enumerate(self.each_head()):
            flat[row, entries] = True
        of_layers = () if self.layers == 1 else (self.layers,)
        return torch.from_numpy(flat.reshape(*of_layers, self.heads, self.length, self.length))

    # Layers

    def layer(self, number: int) -> Pattern:
        """What one layer runs under: a pattern of one layer. Layers that keep the same get one and the same object."""
        if self.layers == 1:
            return self
        if not 0 <= number < self.layers:
            raise PatternError(f"there is no layer {number}; the pattern has layers 0 to {self.layers - 1}")
        return self._each_layer[number]

    @cached_property
    def _each_layer(self) -> tuple[Pattern, ...]:
        return split(self)

    def require_one_layer(self, what: str) -> None:
        if self.layers != 1:
            raise PatternError(
                f"{what} takes a pattern of one layer and this one has {self.layers}; hand over pattern.layer(0), or "
                "whichever layer is meant"
            )

    # Identity: two patterns are equal when they decide alike, whatever rule they came from

    @cached_property
    def digest(self) -> str:
        """sha256 of everything that decides who attends to whom."""
        return digest_of(self.row_starts, self.keys, self.anchor, self.layers)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pattern) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        name = f"{describe(self.rule)}, " if self.rule else ""
        layers = "" if self.layers == 1 else f"layers={self.layers}, "
        anchor = "" if self.anchor == "position" else f", anchor={self.anchor!r}"
        return (
            f"Pattern({name}length={self.length}, {layers}heads={self.heads}, sparsity={self.sparsity:.4f}, "
            f"keys_per_query={self.keys_per_query:.1f}{anchor})"
        )

    # New patterns from old ones

    def __or__(self, other: Pattern) -> Pattern:
        return self._combine(other, "union", lambda left, right: union([left, right]))

    def __and__(self, other: Pattern) -> Pattern:
        return self._combine(other, "intersection", lambda left, right: np.intersect1d(left, right, assume_unique=True))

    def without_diagonal(self) -> Pattern:
        """No token attends to itself."""
        if self.layers > 1:
            return by_layer(lambda one: one.without_diagonal(), self)
        diagonal = offset_entries(self.length, 0)
        rule = self.rule and {"operation": "without_diagonal", "of": [self.rule]}
        return self._rows(lambda _, entries: np.setdiff1d(entries, diagonal, assume_unique=True), rule)

    def random_drop(self, count: int, seed: int = 0) -> Pattern:
        """Without `count` kept entries per head, drawn for each head apart."""

        def drop(row: int, entries: Entries) -> Entries:
            if not 0 <= count <= len(entries):
                raise PatternError(
                    f"cannot drop {count} of the {len(entries)} entries that head {row % self.heads} keeps; "
                    "choose a smaller count"
                )
            generator = draws.generator(seed, "patterns/random_drop", row=row)
            return np.delete(entries, generator.choice(len(entries), count, replace=False))

        return self._rows(drop)

    def crop(self, length: int) -> Pattern:
        """The top-left corner: what an input of this length uses."""
        if not 1 <= length <= self.length:
            raise PatternError(self.too_short_for(length))
        if length == self.length:
            return self
        # In a token-anchored pattern the input's last token takes the place of position n - 1.
        positions = (
            np.arange(length) if self.anchor == "position" else np.append(np.arange(length - 1), self.length - 1)
        )
        place = np.full(self.length, -1, dtype=np.int64)
        place[positions] = np.arange(length)

        def corner(_: int, entries: Entries) -> Entries:
            rows, columns = place[entries // self.length], place[entries % self.length]
            inside = (rows >= 0) & (columns >= 0)
            return np.sort(rows[inside] * length + columns[inside])

        return self._rows(corner, length=length)

    def too_short_for(self, length: int) -> str:
        """What to say of an input of a length that the pattern does not cover."""
        advice = f"rebuild it with pattern.at({length})" if self.rule else "it has no rule for longer ones: cut it"
        return f"pattern covers {self.length} positions but the input has {length}; {advice}"

    def at(self, length: int) -> Pattern:
        """Rebuilt at another length by its rule."""
        if length == self.length:
            return self
        if self.rule is None:
            raise PatternError(
                f"this pattern holds explicit entries for {self.length} positions and no rule to rebuild it at "
                f"{length}; use inputs up to its length, or a pattern made of offsets (patterns.from_offsets)"
            )
        return self._as_ranked(Pattern.rebuilt(self.rule, length).with_heads(self.heads))

    def at_sparsity(self, sparsity: float) -> Pattern:
        """The pattern nearest to a sparsity that its ranking gives; a denser one keeps all that a sparser one keeps."""
        if self.ranking is None:
            raise PatternError(
                f"this pattern carries no ranking to pick sparsity {sparsity:g} from, and is {self.sparsity:.4f} "
                "sparse as it is; freeze its gate again, gates.load(file).freeze(sparsity=..., assured=0), or build it "
                "with patterns.from_ranking"
            )
        rule = self.ranking.rule(sparsity, self.length, self.layers, self.heads)
        return self._as_ranked(Pattern.rebuilt(rule, self.length))

    def anchored(self, anchor: Anchor) -> Pattern:
        """The same entries under the other reading of the last row and column."""
        return self if anchor == self.anchor else replace(self, anchor=anchor)

    def with_heads(self, heads: int) -> Pattern:
        """A pattern of one head, repeated; one of several heads must already have that many."""
        if heads == self.heads:
            return self
        if self.heads != 1:
            raise PatternError(
                f"pattern has {self.heads} heads but {heads} are needed; use a pattern of 1 or {heads} heads"
            )
        repeated = [entries for _, _, entries in self.each_head() for _ in range(heads)]
        return Pattern.from_entries(self.length, repeated, anchor=self.anchor, rule=self.rule, layers=self.layers)

    # Files and pictures

    def save(self, path: str | Path) -> None:
        """A sealed safetensors file; equal patterns with equal rules give equal bytes."""
        save(self, Path(path))

    @staticmethod
    def load(path: str | Path) -> Pattern:
        return load(Path(path), Pattern)

    def picture(self, head: int = 0, width: int | None = None, layer: int = 0) -> str:
        """Text: # kept, . not; with `width` characters a side, + where a cell holds both."""
        return picture(self, head, width, layer)

    def _repr_html_(self) -> str:
        return html(self)

    def _as_ranked(self, rebuilt: Pattern) -> Pattern:
        """Rebuilt with this pattern's anchor and ranking."""
        return replace(rebuilt.anchored(self.anchor), ranking=self.ranking)

    def _rows(
        self, change: Callable[[int, Entries], Entries], rule: Rule | None = None, length: int | None = None
    ) -> Pattern:
        """Each head's entries changed; heads of all layers are counted through."""
        heads = [change(row, entries) for row, (_, _, entries) in enumerate(self.each_head())]
        return Pattern.from_entries(length or self.length, heads, anchor=self.anchor, rule=rule, layers=self.layers)

    def _combine(self, other: Pattern, operation: str, merge: Callable[[Entries, Entries], Entries]) -> Pattern:
        if (self.length, self.anchor) != (other.length, other.anchor):
            raise PatternError(
                f"cannot combine length {self.length}, anchor {self.anchor!r} with length {other.length}, "
                f"anchor {other.anchor!r}; bring both to one length with at() and one anchor with anchored()"
            )
        if max(self.layers, other.layers) > 1:
            return by_layer(lambda left, right: left._combine(right, operation, merge), self, other)
        heads = max(self.heads, other.heads)
        left, right = self.with_heads(heads), other.with_heads(heads)
        rule = {"operation": operation, "of": [self.rule, other.rule]} if self.rule and other.rule else None
        entries = [merge(left.entries(head), right.entries(head)) for head in range(heads)]
        return Pattern.from_entries(self.length, entries, anchor=self.anchor, rule=rule)


def _rules_of_layers(rule: Rule) -> list[Rule]:
    parts = rule.get("of") if isinstance(rule, dict) and rule.get("operation") == "layers" else None
    return parts if isinstance(parts, list) else []


def digest_of(
    row_starts: Int64[np.ndarray, "heads starts"], keys: Int32[np.ndarray, " kept"], anchor: Anchor, layers: int = 1
) -> str:
    """What identifies a pattern of these rows."""
    rows, starts = row_starts.shape
    heads = str(rows) if layers == 1 else f"{layers} x {rows // layers}"
    about = f"{heads}/{starts - 1}/{anchor}/".encode()
    return hashlib.sha256(about + row_starts.tobytes() + keys.tobytes()).hexdigest()


def check_rows(heads: int, length: int, row_starts: np.ndarray, keys: np.ndarray) -> None:
    """Refuse anything but sorted rows inside the pattern: whoever reads the arrays later may trust them."""
    if not (1 <= length < 2**31 and heads >= 1):
        raise PatternError(f"a pattern of {heads} heads and length {length} cannot be; both must be at least 1")
    if row_starts.dtype != np.int64 or keys.dtype != np.int32 or keys.ndim != 1:
        raise PatternError(f"rows are {row_starts.dtype} and keys {keys.dtype}; expected int64 and int32")
    if row_starts.shape != (heads, length + 1):
        raise PatternError(f"row starts have shape {row_starts.shape}; expected {(heads, length + 1)}")
    joined = np.append(row_starts[:, :-1].reshape(-1), row_starts[-1, -1])
    seamless = np.array_equal(row_starts[1:, 0], row_starts[:-1, -1])
    if joined[0] != 0 or joined[-1] != len(keys) or (np.diff(joined) < 0).any() or not seamless:
        raise PatternError(f"row starts do not divide the {len(keys)} keys into {heads} x {length} rows in order")
    if len(keys) and (keys.min() < 0 or keys.max() >= length):
        raise PatternError(f"keys run from {keys.min()} to {keys.max()}; expected 0 to {length - 1}")
    falling = np.flatnonzero(np.diff(keys) <= 0) + 1
    if not np.isin(falling, joined).all():
        raise PatternError("keys of a row are not in rising order, each once; sort them")


def describe(rule: Rule) -> str:
    """A rule as a person would write it: star, big_bird without_diagonal, star union border, star by layer."""
    if "builder" in rule:
        return str(rule["builder"])
    parts = [describe(part) for part in rule["of"]]
    if rule["operation"] == "layers":
        return f"by layer {' / '.join(parts)}" if len(set(parts)) > 1 else f"{parts[0]} by layer"
    return f"{parts[0]} {rule['operation']}" if len(parts) == 1 else f" {rule['operation']} ".join(parts)
