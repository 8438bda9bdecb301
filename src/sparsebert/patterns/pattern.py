"""Pattern: a frozen decision which query may attend to which key, per head (the paper's M)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

import numpy as np
from jaxtyping import Bool, Int32, Int64

from sparsebert import draws
from sparsebert.errors import PatternError
from sparsebert.patterns.entries import Entries, compress, expand, offset_entries, union
from sparsebert.patterns.pictures import html, picture
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
    """

    heads: int
    length: int
    row_starts: Int64[
        np.ndarray, "heads starts"
    ]  # keys of query i of head h: keys[row_starts[h, i]:row_starts[h, i+1]]
    keys: Int32[np.ndarray, " kept"]
    anchor: Anchor = "position"
    rule: Rule | None = None
    # rules.rebuild, which the package hands over: rules name builders, and builders make patterns.
    rebuilt: ClassVar[Callable[[Rule, int], Pattern]]

    def __post_init__(self) -> None:
        check_rows(self.heads, self.length, self.row_starts, self.keys)
        if self.anchor not in get_args(Anchor):
            raise PatternError(f"anchor is {self.anchor!r}; expected 'position' or 'token'")
        self.row_starts.setflags(write=False)
        self.keys.setflags(write=False)

    @classmethod
    def from_entries(
        cls, length: int, heads: Iterable[Entries], *, anchor: Anchor = "position", rule: Rule | None = None
    ) -> Pattern:
        """From the sorted flat entries of each head."""
        row_starts, keys = compress(length, heads)
        return cls(len(row_starts), length, row_starts, keys, anchor, rule)

    # What it keeps

    @property
    def kept(self) -> int:
        """Number of kept entries over all heads."""
        return len(self.keys)

    @property
    def sparsity(self) -> float:
        """1 - kept / n², over all heads."""
        return 1.0 - self.kept / (self.heads * self.length**2)

    @property
    def density(self) -> float:
        return self.kept / (self.heads * self.length**2)

    def entries(self, head: int = 0) -> Entries:
        """Sorted flat entries i * n + j of one head."""
        return expand(self.length, self.row_starts[head], self.keys)

    def keep(self) -> Bool[Tensor, "heads queries keys"]:
        """The dense picture as a bool tensor: costs heads x n² bytes."""
        import torch

        flat = np.zeros((self.heads, self.length**2), dtype=bool)
        for head in range(self.heads):
            flat[head, self.entries(head)] = True
        return torch.from_numpy(flat.reshape(self.heads, self.length, self.length))

    # Identity: two patterns are equal when they decide alike, whatever rule they came from

    @cached_property
    def digest(self) -> str:
        """sha256 of everything that decides who attends to whom."""
        return digest_of(self.row_starts, self.keys, self.anchor)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pattern) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        name = f"{describe(self.rule)}, " if self.rule else ""
        anchor = "" if self.anchor == "position" else f", anchor={self.anchor!r}"
        return f"Pattern({name}length={self.length}, heads={self.heads}, sparsity={self.sparsity:.4f}{anchor})"

    # New patterns from old ones

    def __or__(self, other: Pattern) -> Pattern:
        return self._combine(other, "union", lambda left, right: union([left, right]))

    def __and__(self, other: Pattern) -> Pattern:
        return self._combine(other, "intersection", lambda left, right: np.intersect1d(left, right, assume_unique=True))

    def without_diagonal(self) -> Pattern:
        """No token attends to itself."""
        diagonal = offset_entries(self.length, 0)
        rule = self.rule and {"operation": "without_diagonal", "of": [self.rule]}
        return self._map(lambda _, entries: np.setdiff1d(entries, diagonal, assume_unique=True), rule)

    def random_drop(self, count: int, seed: int = 0) -> Pattern:
        """Without `count` kept entries per head, drawn for each head apart."""

        def drop(head: int, entries: Entries) -> Entries:
            if not 0 <= count <= len(entries):
                raise PatternError(
                    f"cannot drop {count} of the {len(entries)} entries that head {head} keeps; choose a smaller count"
                )
            generator = draws.generator(seed, "patterns/random_drop", row=head)
            return np.delete(entries, generator.choice(len(entries), count, replace=False))

        return self._map(drop, None)

    def crop(self, length: int) -> Pattern:
        """The top-left corner: what an input of this length uses."""
        if not 1 <= length <= self.length:
            raise PatternError(
                f"pattern covers {self.length} positions but the input has {length}; "
                f"rebuild it with pattern.at({length})"
            )
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

        return Pattern.from_entries(
            length, [corner(head, self.entries(head)) for head in range(self.heads)], anchor=self.anchor
        )

    def at(self, length: int) -> Pattern:
        """Rebuilt at another length by its rule."""
        if self.rule is None:
            raise PatternError(
                f"this pattern holds explicit entries for {self.length} positions and no rule to rebuild it at "
                f"{length}; use inputs up to its length, or a pattern made of offsets (patterns.from_offsets)"
            )
        return Pattern.rebuilt(self.rule, length).anchored(self.anchor)

    def anchored(self, anchor: Anchor) -> Pattern:
        """The same entries under the other reading of the last row and column."""
        return (
            self
            if anchor == self.anchor
            else Pattern(self.heads, self.length, self.row_starts, self.keys, anchor, self.rule)
        )

    def with_heads(self, heads: int) -> Pattern:
        """A pattern of one head, repeated; one of several heads must already have that many."""
        if heads == self.heads:
            return self
        if self.heads != 1:
            raise PatternError(
                f"pattern has {self.heads} heads but {heads} are needed; use a pattern of 1 or {heads} heads"
            )
        entries = self.entries()
        return Pattern.from_entries(self.length, [entries] * heads, anchor=self.anchor)

    # Files and pictures

    def save(self, path: str | Path) -> None:
        """A sealed safetensors file; equal patterns with equal rules give equal bytes."""
        save(self, Path(path))

    @staticmethod
    def load(path: str | Path) -> Pattern:
        return load(Path(path), Pattern)

    def picture(self, head: int = 0, width: int | None = None) -> str:
        """Text: # kept, . not; with `width` characters a side, + where a cell holds both."""
        return picture(self, head, width)

    def _repr_html_(self) -> str:
        return html(self)

    def _map(self, change: Callable[[int, Entries], Entries], rule: Rule | None) -> Pattern:
        heads = [change(head, self.entries(head)) for head in range(self.heads)]
        return Pattern.from_entries(self.length, heads, anchor=self.anchor, rule=rule)

    def _combine(self, other: Pattern, operation: str, merge: Callable[[Entries, Entries], Entries]) -> Pattern:
        if (self.length, self.anchor) != (other.length, other.anchor):
            raise PatternError(
                f"cannot combine length {self.length}, anchor {self.anchor!r} with length {other.length}, "
                f"anchor {other.anchor!r}; bring both to one length with at() and one anchor with anchored()"
            )
        heads = max(self.heads, other.heads)
        left, right = self.with_heads(heads), other.with_heads(heads)
        rule = {"operation": operation, "of": [self.rule, other.rule]} if self.rule and other.rule else None
        entries = [merge(left.entries(head), right.entries(head)) for head in range(heads)]
        return Pattern.from_entries(self.length, entries, anchor=self.anchor, rule=rule)


def digest_of(row_starts: Int64[np.ndarray, "heads starts"], keys: Int32[np.ndarray, " kept"], anchor: Anchor) -> str:
    """What identifies a pattern of these rows."""
    heads, starts = row_starts.shape
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
    """A rule as a person would write it: star, big_bird without_diagonal, a union of b."""
    if "builder" in rule:
        return str(rule["builder"])
    parts = [describe(part) for part in rule["of"]]
    return f"{parts[0]} {rule['operation']}" if len(parts) == 1 else f" {rule['operation']} ".join(parts)
