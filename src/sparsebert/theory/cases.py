"""The inputs a claim is checked on, and what checking them gave."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from jaxtyping import Bool, Shaped

from sparsebert import draws
from sparsebert.theory import shifts
from sparsebert.theory.grid import Grid
from sparsebert.theory.shifts import Digits, Integers

Example = dict[str, Any]
Column = Shaped[np.ndarray, " rows"]


@dataclass(frozen=True)
class Case:
    """Inputs of one grid, each as its ascending levels, in lexicographic order; what the layers make of them."""

    grid: Grid
    levels: Integers
    exhaustive: bool  # every input of the grid, not a sample

    @cached_property
    def shifted(self) -> Integers:
        return shifts.shifted(self.levels, self.grid.local_gain)

    @cached_property
    def after_first(self) -> Digits:
        return shifts.normalised(shifts.after_first_global_shift(self.shifted), self.grid.global_gain)

    @cached_property
    def raw_contexts(self) -> Digits:
        return shifts.after_second_global_shift(self.shifted)

    @cached_property
    def contexts(self) -> Digits:
        return shifts.normalised(self.raw_contexts, self.grid.global_gain)

    @cached_property
    def shared_contexts(self) -> list[tuple[int, int]]:
        """Pairs of inputs (or an input twice) that have an entry of q in common."""
        keys = tuple(part.reshape(-1) for part in self.contexts)
        return equal_neighbours(keys, np.repeat(np.arange(len(self.levels)), self.grid.tokens))

    def context(self, row: int, token: int) -> int:
        """One entry of q as a Python integer."""
        digits = tuple(int(part[row, token]) for part in self.raw_contexts)
        return shifts.as_integer(digits, self.grid.global_gain)

    def tokens(self, row: int) -> list[int]:
        """One input, as integer multiples of delta."""
        return [int(level) for level in self.levels[row]]

    def spread(self, count: int) -> Sequence[int]:
        """At most `count` inputs, spread evenly: what is checked where each input is costly."""
        total = len(self.levels)
        return range(total) if total <= count else [int(row) for row in np.linspace(0, total - 1, count)]


@dataclass(frozen=True)
class Outcome:
    """How many instances of a claim were checked, how many were false, and the smallest of these."""

    checked: int
    violations: int
    counter_example: Example | None = None
    sampled: bool = False  # not every input of the case, because each is costly


def num_inputs(grid: Grid) -> int:
    """Sets of distinct tokens; where rows are marked, sequences of any tokens."""
    return int(grid.num_cells**grid.tokens) if grid.marked else comb(grid.num_cells, grid.tokens)


def case(grid: Grid, limit: int, samples: int, seed: int) -> Case:
    """Every input of the grid where there are at most `limit`, else `samples` random ones."""
    exhaustive = num_inputs(grid) <= limit
    kind = shifts.integer_type(grid)
    if grid.marked:
        levels = _all_marked(grid) if exhaustive else _some_marked(grid, samples, seed)
    else:
        levels = _all_sets(grid) if exhaustive else _some_sets(grid, samples, seed)
    return Case(grid, levels.astype(kind), exhaustive)


def _all_sets(grid: Grid) -> Integers:
    return np.array(list(combinations(range(grid.num_cells), grid.tokens)), dtype=np.int64)


def _all_marked(grid: Grid) -> Integers:
    cells = np.indices((grid.num_cells,) * grid.tokens).reshape(grid.tokens, -1).T
    return cells + np.arange(grid.tokens) * grid.num_cells


def _some_marked(grid: Grid, samples: int, seed: int) -> Integers:
    generator = draws.generator(seed, "theory/marked", step=grid.num_cells)
    cells = generator.integers(0, grid.num_cells, (samples, grid.tokens))
    return np.unique(cells, axis=0) + np.arange(grid.tokens) * grid.num_cells


def _some_sets(grid: Grid, samples: int, seed: int) -> Integers:
    """Random sets: a sorted draw from fewer cells becomes distinct when the i-th token is raised by i."""
    generator = draws.generator(seed, "theory/sets", step=grid.num_cells)
    lowered = generator.integers(0, grid.num_cells - grid.tokens + 1, (samples, grid.tokens))
    return np.unique(np.sort(lowered, axis=1), axis=0) + np.arange(grid.tokens)


def per_input(
    case: Case, violated: Bool[np.ndarray, " inputs"], explain: Callable[[int], Example] | None = None
) -> Outcome:
    """A claim about each input by itself."""
    count = int(np.count_nonzero(violated))
    if not count:
        return Outcome(len(violated), 0)
    row = int(np.argmax(violated))
    detail = explain(row) if explain else {}
    return Outcome(len(violated), count, {"inputs": [case.tokens(row)], **detail})


def each_input(case: Case, most: int, fault: Callable[[int], Example | None]) -> Outcome:
    """A claim about each input that is costly to check: on at most so many of them, up to the first that is wrong."""
    rows = case.spread(most)
    for count, row in enumerate(rows, start=1):
        found = fault(row)
        if found is not None:
            return Outcome(count, 1, {"inputs": [case.tokens(row)], **found})
    return Outcome(len(rows), 0, sampled=len(rows) < len(case.levels))


def as_a_whole(wrong: bool, example: Example, checked: int = 1) -> Outcome:
    """A claim that is true or false at once; the example says why it is false."""
    return Outcome(checked, int(wrong), example if wrong else None)


def per_pair(case: Case, pairs: Iterable[tuple[int, int]], checked: int) -> Outcome:
    """A claim that nothing is shared, given the pairs of inputs (or inputs twice) that share something."""
    found = list(pairs)
    if not found:
        return Outcome(checked, 0)
    first, second = min(found)
    inputs = [case.tokens(first)] if first == second else [case.tokens(first), case.tokens(second)]
    return Outcome(checked, len(found), {"inputs": inputs})


def equal_neighbours(keys: tuple[Column, ...], owners: Column) -> list[tuple[int, int]]:
    """Owners of entries that are equal and next to each other once sorted, so that no equality is missed."""
    if keys[0].dtype == object:
        order = np.array(sorted(range(len(owners)), key=lambda row: (*(key[row] for key in keys), owners[row])))
    else:
        order = np.lexsort((owners, *reversed(keys)))
    same = np.ones(len(order) - 1, dtype=bool)
    for key in keys:
        same &= (key[order[1:]] == key[order[:-1]]).astype(bool)
    places = np.flatnonzero(same)
    return list(zip(owners[order[places]].tolist(), owners[order[places + 1]].tolist(), strict=True))
