"""The audit: every claim on the way to the theorem, checked at every resolution up to one, with a verdict each."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from sparsebert.theory import claims, statements
from sparsebert.theory.cases import Case, Example, Outcome, case
from sparsebert.theory.grid import Grid

Verdict = Literal["holds", "fails", "not checked"]
Source = Literal["paper", "repair"]
Check = Callable[[Case], Outcome]


@dataclass(frozen=True)
class Lemma:
    """A sentence that is true or false on every case, and where the paper says it (or the repair needs it)."""

    claim: str
    where: str
    check: Check | None  # None: analysis, which no list of inputs can decide
    source: Source = "paper"
    marked: bool = False  # rows carry their position
    only: Callable[[int, int], bool] = lambda n, d: True


def _repair(claim: str, where: str, check: Check) -> Lemma:
    return Lemma(claim, where, check, "repair")


def _marked(claim: str, check: Check, where: str = "repair with positions") -> Lemma:
    return Lemma(f"marked rows: {claim}", where, check, "repair", marked=True)


CLAIMS: Sequence[Lemma] = [
    Lemma("a piecewise constant function comes within epsilon/3 of f", "A.1, Lemma 8 of Yun et al.", None),
    Lemma("d/delta + d token-wise layers quantise every entry", "A.2, quantisation", statements.quantiser_layers),
    Lemma(
        "the quantiser keeps every token 0 .. 1-delta (k printed from 1)",
        "A.2, quantisation",
        statements.quantiser_as_printed,
    ),
    Lemma("Z_i u is a bijection onto 0 .. delta^(-d+1)-delta", "A.2, choice of u", statements.levels_are_bijective),
    Lemma("rows outside the grid have Z_i u < 0", "A.2, choice of u", statements.outside_is_negative),
    Lemma("each selective shift moves one row, each row moves once", "A.2, selective shift", claims.one_row_a_layer),
    Lemma("base step: l~_1 > l_n", "A.2, base step", claims.base_step),
    Lemma("base step as printed: l~_1 - l_n > delta", "A.2, base step", claims.base_step_margin),
    Lemma("expansion of l~_i", "A.2, inductive step", claims.expansion),
    Lemma("order l_i+1 < .. < l_n < l~_1 < .. < l~_i after phase i", "A.2, inductive step", claims.ordering),
    Lemma("as printed: l~_i - l~_i-1 > delta", "A.2, inductive step", claims.ordering_margin),
    Lemma("delta^-nd - delta^-(n-1)d - delta^-2d > 0", "A.2, last phase", claims.leading_coefficient),
    Lemma("0 < l~_i < Delta_h", "A.2, upper bound", claims.bounds),
    Lemma(
        "l~_3 < delta^-3 for n = 3, d = 1",
        "Section 3.2, Step 2",
        claims.bound_of_main_text,
        only=lambda n, d: n == 3 and d == 1,
    ),
    Lemma("order l~+_n < l~+_1 < .. < l~+_n-1", "A.2, first global shift", claims.order_after_first_global_shift),
    Lemma("the layers give the expanded l~++_i", "A.2, second global shift", claims.layers_match_closed_form),
    Lemma("q_i mod (Delta_h/delta) = l~_i", "A.2, first property", claims.modulo_as_printed),
    Lemma("q_i lies in [(Delta_h/delta)^2 l~_n, .. (l~_n + delta))", "A.2, second property", claims.interval),
    Lemma("l~_n is the unique identity of the input", "A.2, second property", claims.last_identifies),
    Lemma("delta^-d + 1 attention layers, as the lemma counts", "A.2, lemma", statements.layers_as_stated),
    Lemma("contextual mapping, first half, over any G", "A.2, Definition 1", statements.literal_within),
    Lemma("contextual mapping, second half, over sequences", "A.2, Definition 1", statements.literal_across),
    Lemma("contextual mapping, first half, over sets of distinct tokens", "A.2, lemma", claims.distinct_within),
    Lemma("contextual mapping, second half, over sets of distinct tokens", "A.2, lemma", claims.distinct_across),
    Lemma("inputs not treated have measure O(delta^d), k from 0", "A.2, value mapping", statements.exceptional_measure),
    Lemma(
        "inputs not treated have measure O(delta^d), k from 1 as printed",
        "A.2, value mapping",
        statements.exceptional_measure_as_printed,
    ),
    Lemma("softmax and ReLU come within epsilon/3 of hardmax", "A.3, Lemma 9 of Yun et al.", None),
    Lemma("any continuous f, without positional encodings", "Section 3.2, theorem", statements.theorem_as_stated),
    _repair("q_i mod Delta_h = l~_i", "repair of the mod step", claims.modulo_repaired),
    _repair("(l~_n-1, l~_n) is the unique identity of the input", "repair of identity", claims.last_two_identify),
    _repair("l~_n collides for the family a + t(1,0,1,0,..) only", "repair of identity", claims.only_twins_collide),
    _repair("any one entry of q decodes to the input and the index", "repair of identity", claims.entries_decode),
    _repair(
        "one global shift is enough, so delta^-d + 1 layers", "repair of the count", claims.one_global_shift_suffices
    ),
    _marked("order after every phase", claims.ordering),
    _marked("0 < l~_i < Delta_h", claims.bounds),
    _marked("l~_n alone is the identity", claims.last_identifies),
    _marked("(l~_n-1, l~_n) is the identity", claims.last_two_identify),
    _marked("contextual mapping, first half, over any G", claims.distinct_within),
    _marked("contextual mapping, second half, over any G", claims.distinct_across),
    _marked("any one entry of q decodes to the input", claims.entries_decode),
    _marked("the layers give the expanded l~++_i", claims.layers_match_closed_form),
    _marked("n delta^-d + 2 attention layers", statements.layers_when_marked),
    _marked("n delta^-dn layers of the value map", claims.num_contexts, "A.2, value mapping"),
]


@dataclass(frozen=True)
class Bounds:
    """How far a verdict reaches."""

    tokens: int
    width: int
    resolutions: tuple[int, int] | None  # smallest and largest 1/delta looked at
    exhaustive_up_to: int | None  # largest 1/delta at which every input was checked
    note: str


@dataclass(frozen=True)
class AuditedLemma:
    """A claim with its verdict; a counter-example is the smallest, in integer multiples of delta."""

    claim: str
    where: str
    source: Source
    verdict: Verdict
    checked: int
    violations: int
    violations_at: dict[int, int]  # for each 1/delta
    bounds: Bounds
    counter_example: Example | None

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass
class _Gathered:
    """What one claim has gathered over the resolutions."""

    checked: int = 0
    violations_at: dict[int, int] = field(default_factory=dict)
    exhaustive: int | None = None
    counter_example: Example | None = None

    def add(self, resolution: int, outcome: Outcome, exhaustive: bool) -> None:
        self.checked += outcome.checked
        self.violations_at[resolution] = outcome.violations
        consecutive = len(self.violations_at) == 1 or self.exhaustive == resolution - 1
        if exhaustive and not outcome.sampled and consecutive:
            self.exhaustive = resolution
        if outcome.violations and self.counter_example is None:
            self.counter_example = {"resolution": resolution, **(outcome.counter_example or {})}


def audit(
    tokens: int,
    width: int,
    resolution: int,
    *,
    limit: int = 600_000,
    samples: int = 20_000,
    seed: int = 0,
    told: Callable[[float], object] = lambda share: None,
) -> list[AuditedLemma]:
    """Check every claim at every 1/delta up to this one; told: the share that is done, now and then."""
    Grid(tokens, width, resolution)  # refuses what cannot be audited before anything is counted
    tallies = {claim: _Gathered() for claim in CLAIMS if claim.only(tokens, width)}
    for r in range(2, resolution + 1):
        # Without marks tokens are distinct, which takes as many cells.
        for marked in (False, True) if r**width >= tokens else (True,):
            inputs = case(Grid(tokens, width, r, marked), limit, samples, seed)
            for claim, tally in tallies.items():
                if claim.check is not None and claim.marked == marked:
                    tally.add(r, claim.check(inputs), inputs.exhaustive)
        # Cost grows steeply with the resolution; the cube is a fair guess of the share that is done.
        told((r / resolution) ** 3)
    return [_finding(tokens, width, claim, tally) for claim, tally in tallies.items()]


def _finding(tokens: int, width: int, claim: Lemma, tally: _Gathered) -> AuditedLemma:
    found = sum(tally.violations_at.values())
    verdict: Verdict = "not checked" if claim.check is None else "fails" if found else "holds"
    seen = (min(tally.violations_at), max(tally.violations_at)) if tally.violations_at else None
    return AuditedLemma(
        claim.claim,
        claim.where,
        claim.source,
        verdict,
        tally.checked,
        found,
        tally.violations_at,
        Bounds(tokens, width, seen, tally.exhaustive, _reach(seen, tally.exhaustive)),
        tally.counter_example,
    )


def _reach(seen: tuple[int, int] | None, exhaustive: int | None) -> str:
    if seen is None:
        return "analysis; measured by the approximation study, not decided here"
    first, last = seen
    if exhaustive == last:
        return f"every input for 1/delta = {first}..{last}; not checked beyond"
    if exhaustive is None:
        return f"a sample of inputs for 1/delta = {first}..{last}; not checked beyond"
    return f"every input for 1/delta = {first}..{exhaustive}; a sample up to {last}; not checked beyond"
