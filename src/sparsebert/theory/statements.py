"""Claims about the grid as a whole: quantisation, layer counts, the definition taken literally, the theorem itself."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import islice, permutations, product
from math import comb, factorial, perm

from sparsebert.theory import exact
from sparsebert.theory.cases import Case, Example, Outcome, as_a_whole
from sparsebert.theory.grid import Grid, Number
from sparsebert.theory.token_layers import applied, quantiser

REORDERED = 720  # reordered inputs run through the exact layers at each resolution


def _verdict(checked: int, wrong: list[Example]) -> Outcome:
    return Outcome(checked, len(wrong), wrong[0] if wrong else None)


# Quantisation


def _probes(grid: Grid) -> list[Fraction]:
    """In units of delta: the start, middle and end of every cell, and both sides of [0, 1)."""
    inside = [k + part for k in range(grid.resolution) for part in (Fraction(0), Fraction(1, 2), Fraction(999, 1000))]
    return [Fraction(-1), Fraction(-1, 7), *inside, Fraction(grid.resolution), grid.resolution + Fraction(5, 3)]


def _rounded(value: Fraction, grid: Grid) -> int:
    return value.numerator // value.denominator if 0 <= value < grid.resolution else grid.outside


def quantiser_layers(case: Case) -> Outcome:
    """d/delta + d layers of three pieces quantise every entry (k counted from 0)."""
    grid, layers = case.grid, quantiser(case.grid)
    wrong: list[Example] = []
    probes = _probes(grid)
    for value in probes:
        found = applied(layers, [value] * grid.width)
        if found != [_rounded(value, grid)] * grid.width:
            wrong.append({"value": str(value), "found": [str(entry) for entry in found]})
    expected = grid.width * grid.resolution + grid.width
    if len(layers) != expected:
        wrong.append({"found": len(layers), "expected": expected})
    return _verdict(len(probes) * grid.width, wrong)


def quantiser_as_printed(case: Case) -> Outcome:
    """Printed with k from 1: the token 0, which the shifts start from, is sent outside."""
    grid = case.grid
    wrong = [
        {"inputs": [[k]], "found": grid.outside, "expected": k}
        for k in range(grid.resolution)
        if not 1 <= k < grid.resolution
    ]
    return _verdict(grid.resolution, wrong)


def levels_are_bijective(case: Case) -> Outcome:
    """z -> z·u maps the cells of a row onto 0 .. delta^-d - 1."""
    grid = case.grid
    found = sorted(
        sum(a * b for a, b in zip(row, grid.direction, strict=True))
        for row in product(range(grid.resolution), repeat=grid.width)
    )
    return as_a_whole(found != list(range(grid.num_cells)), {"levels": found[:8]}, len(found))


def outside_is_negative(case: Case) -> Outcome:
    """A row with an entry outside lies below -delta^-nd + delta^(-d+1) - delta, and below 0."""
    grid = case.grid
    choices = [grid.outside, *range(grid.resolution)]
    rows = [row for row in product(choices, repeat=grid.width) if grid.outside in row]
    bound = grid.outside + grid.num_cells - 1
    levels = [sum(a * b for a, b in zip(row, grid.direction, strict=True)) for row in rows]
    wrong: list[Example] = [
        {"row": list(row)} for row, level in zip(rows, levels, strict=True) if level > bound or level >= 0
    ]
    return _verdict(len(rows), wrong)


# Counting layers


def _num_layers(case: Case) -> int:
    return sum(1 for _ in exact.attention_layers(case.grid.rows(case.tokens(0)), case.grid))


def layers_as_stated(case: Case) -> Outcome:
    """The lemma says delta^-d + 1 attention layers; count those of the construction."""
    found, printed = _num_layers(case), case.grid.num_cells + 1
    return as_a_whole(found != printed, {"found": found, "printed": printed})


def layers_when_marked(case: Case) -> Outcome:
    """n·delta^-d + 2 attention layers."""
    found, expected = _num_layers(case), case.grid.tokens * case.grid.num_cells + 2
    return as_a_whole(found != expected, {"found": found, "expected": expected})


# The definition and the theorem, taken literally


def _sequences(grid: Grid, *, distinct: bool) -> Iterator[tuple[int, ...]]:
    if distinct:
        return permutations(range(grid.num_cells), grid.tokens)
    return product(range(grid.num_cells), repeat=grid.tokens)


def literal_within(case: Case) -> Outcome:
    """All entries of q(G) differ for *any* G of the grid: searched in order until one fails."""
    for count, tokens in enumerate(_sequences(case.grid, distinct=False), start=1):
        found = exact.contexts(case.grid.rows(tokens), case.grid)
        if len(set(found)) < len(found):
            return Outcome(count, 1, {"inputs": [list(tokens)], "found": [str(value) for value in found]})
    return Outcome(count, 0)


def literal_across(case: Case) -> Outcome:
    """No entry of q is shared by two *sequences* of distinct tokens: searched in order until one fails."""
    owner: dict[Number, tuple[int, ...]] = {}
    count = 0
    for tokens in _sequences(case.grid, distinct=True):
        for entry in exact.contexts(case.grid.rows(tokens), case.grid):
            count += 1
            other = owner.setdefault(entry, tokens)
            if other != tokens:
                return Outcome(count, 1, {"inputs": [list(other), list(tokens)], "shared": str(entry)})
    return Outcome(count, 0)


def theorem_as_stated(case: Case) -> Outcome:
    """Any f, without positions: refuted where reordering the input only reorders the output, as f need not do."""
    grid, checked = case.grid, 0
    for row in case.spread(max(1, REORDERED // factorial(grid.tokens))):
        tokens = case.tokens(row)
        known = dict(zip(tokens, exact.contexts(grid.rows(tokens), grid), strict=True))
        for order in islice(permutations(tokens), REORDERED):
            checked += 1
            if exact.contexts(grid.rows(order), grid) != [known[token] for token in order]:
                return Outcome(checked, 0)
    tokens = case.tokens(0)
    swapped = [tokens[0], *tokens[2:], tokens[1]]
    example = {
        "inputs": [tokens, swapped],
        "reason": "every g reorders its output with its input; f(X) = first token times last does not",
    }
    return Outcome(checked, checked, example)


# The inputs that the construction does not treat


def repeated(grid: Grid) -> Fraction:
    """Share of inputs with two tokens in one cell."""
    cells, n = grid.num_cells, grid.tokens
    return 1 - Fraction(perm(cells, n), cells**n)


def exceptional_measure(case: Case) -> Outcome:
    """Two tokens in one cell: at most n(n-1)/2·delta^d of all inputs."""
    grid = case.grid
    found, bound = repeated(grid), Fraction(comb(grid.tokens, 2), grid.num_cells)
    return as_a_whole(found > bound, {"found": str(found), "bound": str(bound)})


def exceptional_measure_as_printed(case: Case) -> Outcome:
    """With k from 1 every entry in [0, delta) is lost too: O(delta), which is not O(delta^d) for d > 1."""
    grid = case.grid
    entries, inner = grid.tokens * grid.width, grid.resolution - 1
    # Inputs that are kept have no entry in the first cell of its axis and no two tokens in one of the inner cells.
    found = 1 - Fraction(perm(inner**grid.width, grid.tokens), grid.num_cells**grid.tokens)
    bound = Fraction(comb(grid.tokens, 2) + entries, grid.num_cells)
    return as_a_whole(found > bound, {"resolution": grid.resolution, "found": str(found), "bound": str(bound)})
