"""The negative control: the same construction on a pattern that keeps information apart, and where it breaks."""

from collections.abc import Callable, Iterator
from itertools import pairwise, product

from sparsebert.errors import TheoryError
from sparsebert.theory import exact
from sparsebert.theory.cases import Example, Outcome, num_inputs
from sparsebert.theory.exact import Keys
from sparsebert.theory.grid import Grid, Number

Trace = list[list[Number]]  # levels of the rows after every attention layer
Find = Callable[[tuple[int, ...], Trace], Example | None]  # what is wrong with one input, if anything

_MOST_INPUTS = 5_000  # kept with their levels after every layer


def control(grid: Grid, keys: Keys) -> dict[str, Outcome]:
    """The claims of the proof on all inputs of a marked grid, under any pattern, in the order of the proof."""
    if num_inputs(grid) > _MOST_INPUTS:
        raise TheoryError(
            f"found {num_inputs(grid):,} inputs to follow through every layer; the control takes at most "
            f"{_MOST_INPUTS:,}, so lower the resolution or the number of tokens"
        )
    traces = dict(_traces(grid, keys))
    return {
        "order after every phase": _first(traces, _disorder),
        "all shifted levels positive and distinct": _first(traces, lambda tokens, trace: _repeats(grid, trace[-3])),
        "contextual mapping, first half": _first(traces, lambda tokens, trace: _repeats(grid, trace[-1])),
        "contextual mapping, second half": _shared(traces),
    }


def _traces(grid: Grid, keys: Keys) -> Iterator[tuple[tuple[int, ...], Trace]]:
    for cells in product(range(grid.num_cells), repeat=grid.tokens):
        tokens = tuple(cell + position * grid.num_cells for position, cell in enumerate(cells))
        steps = exact.attention_layers(grid.rows(tokens), grid, keys)
        yield tokens, [exact.levels_of(step.rows, grid) for step in steps]


def _disorder(tokens: tuple[int, ...], trace: Trace) -> Example | None:
    """The first phase after which the untouched rows do not all stand below the shifted ones, in order."""
    for phase, level in enumerate(tokens, start=1):
        after = trace[level]
        expected = [*after[phase:], *after[:phase]]
        if any(left >= right for left, right in pairwise(expected)):
            return {"phase": phase, "levels": [str(value) for value in after]}
    return None


def _repeats(grid: Grid, levels: list[Number]) -> Example | None:
    if len(set(levels)) == grid.tokens and min(levels) > 0:
        return None
    return {"levels": [str(value) for value in levels]}


def _first(traces: dict[tuple[int, ...], Trace], find: Find) -> Outcome:
    found = [(tokens, example) for tokens, trace in traces.items() if (example := find(tokens, trace)) is not None]
    if not found:
        return Outcome(len(traces), 0)
    tokens, example = found[0]
    return Outcome(len(traces), len(found), {"inputs": [list(tokens)], **example})


def _shared(traces: dict[tuple[int, ...], Trace]) -> Outcome:
    """Entries of q that two inputs have in common: what such a token cannot know."""
    owner: dict[Number, tuple[int, ...]] = {}
    count, example = 0, None
    for tokens, trace in traces.items():
        for position, entry in enumerate(trace[-1]):
            other = owner.setdefault(entry, tokens)
            if other != tokens:
                count += 1
                example = example or {"inputs": [list(other), list(tokens)], "token": position, "shared": str(entry)}
    return Outcome(sum(len(trace[-1]) for trace in traces.values()), count, example)
