"""The claims of Appendix A up to the contextual mapping, one small function each, in the order of the proof.

A function gets a case and returns what it found. All quantities are in units of delta, tokens counted from 0; N is the
number of levels (`local_gain`), G the paper's Delta_h/delta (`global_gain`).
"""

import numpy as np

from sparsebert.errors import TheoryError
from sparsebert.theory import exact, identity, shifts
from sparsebert.theory.cases import (
    Case,
    Example,
    Outcome,
    as_a_whole,
    each_input,
    equal_neighbours,
    per_input,
    per_pair,
)

LAYERED = 600  # inputs run through the exact layers at each resolution; the closed forms cover the rest
DECODED = 2_000  # inputs decoded one by one at each resolution


def _any(violated: np.ndarray) -> np.ndarray:
    return np.asarray(violated.astype(bool).any(axis=1))


# Selective shifts


def layers_match_closed_form(case: Case) -> Outcome:
    """The heads, run as hardmax layers, give the recurrences and the form after the second global shift."""

    def fault(row: int) -> Example | None:
        found = exact.contexts(case.grid.rows(case.tokens(row)), case.grid)
        return None if found == [case.context(row, token) for token in range(case.grid.tokens)] else {}

    return each_input(case, LAYERED, fault)


def one_row_a_layer(case: Case) -> Outcome:
    """The layer of a level moves the row at that level and no other; every row moves once."""

    def fault(row: int) -> Example | None:
        tokens = case.tokens(row)
        before = list(tokens)
        layers = exact.attention_layers(case.grid.rows(tokens), case.grid)
        for level, step in zip(range(case.grid.num_levels), layers, strict=False):
            after = exact.levels_of(step.rows, case.grid)
            moved = [token for token in range(case.grid.tokens) if after[token] != before[token]]
            if moved != [token for token, own in enumerate(tokens) if own == level]:
                return {"layer": level, "moved": moved}
            before = [int(value) for value in after]
        return None

    return each_input(case, LAYERED, fault)


def base_step(case: Case) -> Outcome:
    return per_input(case, (case.shifted[:, 0] <= case.levels[:, -1]).astype(bool))


def base_step_margin(case: Case) -> Outcome:
    """Printed as a strict inequality: more than delta."""
    margin = case.shifted[:, 0] - case.levels[:, -1]
    return per_input(case, (margin <= 1).astype(bool), lambda row: {"found": int(margin[row]), "printed": "> 1"})


def expansion(case: Case) -> Outcome:
    different = [
        shifts.expanded(case.levels, case.grid.local_gain, token) != case.shifted[:, token]
        for token in range(case.grid.tokens)
    ]
    return per_input(case, _any(np.stack(different, axis=1)))


def ordering(case: Case) -> Outcome:
    """After each phase the untouched rows stand below all shifted ones, which keep their order."""
    moved = case.shifted
    above = (moved <= case.levels[:, -1:]).astype(bool)
    return per_input(case, _any(np.concatenate([above, np.diff(moved, axis=1) <= 0], axis=1)))


def ordering_margin(case: Case) -> Outcome:
    """Printed as strict inequalities: consecutive shifted rows are more than delta apart."""
    gaps = np.diff(case.shifted, axis=1)
    return per_input(case, _any(gaps <= 1), lambda row: {"found": int(min(gaps[row])), "printed": "> 1"})


def leading_coefficient(case: Case) -> Outcome:
    gain, n = case.grid.local_gain, case.grid.tokens
    found = gain**n - gain ** (n - 1) - gain**2
    return as_a_whole(found <= 0, {"levels": gain, "found": found})


def bounds(case: Case) -> Outcome:
    """0 < l~_i < Delta_h."""
    return per_input(case, _any((case.shifted <= 0) | (case.shifted >= case.grid.global_gain)))


def bound_of_main_text(case: Case) -> Outcome:
    """n = 3, d = 1: the last shifted value stays below delta^-3, which is N^4 units."""
    return per_input(case, (case.shifted[:, -1] >= case.grid.local_gain**4).astype(bool))


# Global shifts


def order_after_first_global_shift(case: Case) -> Outcome:
    """The last token falls behind the first; the others keep their order."""
    sequence = [case.grid.tokens - 1, *range(case.grid.tokens - 1)]
    high, low = (part[:, sequence] for part in case.after_first)
    falls = (high[:, 1:] < high[:, :-1]) | ((high[:, 1:] == high[:, :-1]) & (low[:, 1:] <= low[:, :-1]))
    return per_input(case, _any(falls))


def interval(case: Case) -> Outcome:
    """Every entry of q lies in [G²·l~_n, G²·(l~_n + delta))."""
    return per_input(case, _any(case.contexts[0] != case.shifted[:, -1:]))


def _modulo(case: Case, row: int, modulus: int) -> Example:
    found = [case.context(row, token) % modulus for token in range(case.grid.tokens)]
    return {"found": found, "printed": [int(value) for value in case.shifted[row]]}


def modulo_as_printed(case: Case) -> Outcome:
    """q mod Delta_h/delta: that modulus is G itself, which is G·(1/delta) in units of delta."""
    resolution, base = case.grid.resolution, case.grid.global_gain
    high, middle, low = case.contexts
    # q = G·(G·high + middle) + low, so its remainder modulo G·r is G·((G·high + middle) mod r) + low.
    factor = (base % resolution) * (high % resolution) + middle % resolution
    wrong = _any(((factor % resolution) != 0) | (low != case.shifted))
    return per_input(case, wrong, lambda row: _modulo(case, row, base * resolution))


def modulo_repaired(case: Case) -> Outcome:
    """q mod Delta_h, which is G in units of delta."""
    return per_input(case, _any(case.contexts[-1] != case.shifted))


# Identity of an input


def _sharing(case: Case, *keys: np.ndarray) -> Outcome:
    return per_pair(case, equal_neighbours(keys, np.arange(len(case.levels))), len(case.levels))


def last_identifies(case: Case) -> Outcome:
    return _sharing(case, case.shifted[:, -1])


def last_two_identify(case: Case) -> Outcome:
    return _sharing(case, case.shifted[:, -1], case.shifted[:, -2])


def only_twins_collide(case: Case) -> Outcome:
    """Inputs that share their last shifted level differ by t(1,0,1,0,..), and are as many as that family has."""
    pairs = equal_neighbours((case.shifted[:, -1],), np.arange(len(case.levels)))
    strangers = [(a, b) for a, b in pairs if not _are_twins(case.levels[b] - case.levels[a])]
    if strangers or not case.exhaustive:
        return per_pair(case, strangers, len(case.levels))
    counts = np.unique(case.shifted[:, -1], return_counts=True)[1]
    found = int(sum(count * (count - 1) // 2 for count in counts))
    expected = identity.num_twin_pairs(case.grid.tokens, case.grid.num_levels)
    return as_a_whole(found != expected, {"found": found, "expected": expected}, len(case.levels))


def _are_twins(difference: np.ndarray) -> bool:
    return len(difference) % 2 == 0 and not difference[1::2].any() and len(set(difference[::2].tolist())) == 1


def entries_decode(case: Case) -> Outcome:
    """Any one entry of q gives back the input and the token's index."""
    rows = case.spread(DECODED)
    for count, row in enumerate(rows):
        tokens = case.tokens(row)
        for token in range(case.grid.tokens):
            if not _decodes(case.context(row, token), case, (tokens, token)):
                return Outcome(count * case.grid.tokens + token + 1, 1, {"inputs": [tokens], "token": token})
    return Outcome(len(rows) * case.grid.tokens, 0, sampled=len(rows) < len(case.levels))


def _decodes(entry: int, case: Case, expected: tuple[list[int], int]) -> bool:
    try:
        return identity.decoded(entry, case.grid) == expected
    except TheoryError:
        return False


# The contextual mapping


def distinct_within(case: Case) -> Outcome:
    return per_pair(case, (pair for pair in case.shared_contexts if pair[0] == pair[1]), case.levels.size)


def distinct_across(case: Case) -> Outcome:
    return per_pair(case, (pair for pair in case.shared_contexts if pair[0] != pair[1]), case.levels.size)


def one_global_shift_suffices(case: Case) -> Outcome:
    """The lemma's number of layers, delta^-d + 1: the second global shift left out."""
    keys = tuple(part.reshape(-1) for part in case.after_first)
    owners = np.repeat(np.arange(len(case.levels)), case.grid.tokens)
    return per_pair(case, equal_neighbours(keys, owners), case.levels.size)


def num_contexts(case: Case) -> Outcome:
    """Marked inputs have n·delta^-dn contexts: one layer of the value map for each."""
    found = case.levels.size - len(case.shared_contexts)
    expected = case.grid.tokens * case.grid.num_cells**case.grid.tokens if case.exhaustive else case.levels.size
    return as_a_whole(found != expected, {"found": found, "expected": expected}, case.levels.size)
