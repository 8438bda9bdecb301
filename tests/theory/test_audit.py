import pytest

from sparsebert.errors import TheoryError
from sparsebert.theory.audit import CLAIMS, audit


def by_claim(findings):
    return {finding.claim: finding for finding in findings}


@pytest.fixture(scope="module")
def four():
    return by_claim(audit(4, 1, 6))


@pytest.fixture(scope="module")
def three():
    return by_claim(audit(3, 1, 6))


IDENTITY = "l~_n is the unique identity of the input"
PAIR = "(l~_n-1, l~_n) is the unique identity of the input"
ONE_SHIFT = "one global shift is enough, so delta^-d + 1 layers"
ALWAYS_FALSE = [
    "the quantiser keeps every token 0 .. 1-delta (k printed from 1)",
    "q_i mod (Delta_h/delta) = l~_i",
    "delta^-d + 1 attention layers, as the lemma counts",
    "contextual mapping, first half, over any G",
    "contextual mapping, second half, over sequences",
    "any continuous f, without positional encodings",
]


def test_the_first_collision_of_four_tokens_is_found(four):
    finding = four[IDENTITY]
    assert finding.verdict == "fails"
    assert finding.counter_example == {"resolution": 6, "inputs": [[0, 2, 3, 5], [1, 2, 4, 5]]}
    assert finding.violations_at == {4: 0, 5: 0, 6: 1}


def test_the_first_collision_of_six_tokens_is_found():
    # Six tokens up to nine levels; marked inputs are sampled here, as half a million of them take their time.
    finding = by_claim(audit(6, 1, 9, limit=1000, samples=200))[IDENTITY]
    assert finding.counter_example == {"resolution": 9, "inputs": [[0, 2, 3, 5, 6, 8], [1, 2, 4, 5, 7, 8]]}


def test_the_last_level_identifies_three_tokens(three):
    assert three[IDENTITY].verdict == "holds"
    assert three[IDENTITY].checked == 1 + 4 + 10 + 20


def test_the_repaired_identity_and_the_conclusion_hold(three, four):
    for findings in (three, four):
        assert findings[PAIR].verdict == "holds"
        assert findings["q_i mod Delta_h = l~_i"].verdict == "holds"
        for name, finding in findings.items():
            if "contextual mapping" in name and ("sets" in name or "marked" in name):
                assert finding.verdict == "holds"


def test_one_global_shift_suffices_for_odd_but_not_for_even_n(three, four):
    assert three[ONE_SHIFT].verdict == "holds"
    assert four[ONE_SHIFT].verdict == "fails"


def test_marks_alone_do_not_repair_the_identity_of_even_n(four):
    finding = four["marked rows: l~_n alone is the identity"]
    assert finding.counter_example == {"resolution": 2, "inputs": [[0, 2, 4, 6], [1, 2, 5, 6]]}


@pytest.mark.parametrize("claim", ALWAYS_FALSE)
def test_what_fails_at_every_size(three, four, claim):
    assert three[claim].verdict == four[claim].verdict == "fails"
    assert three[claim].counter_example["resolution"] == 3


def test_strict_margins_are_met_with_equality_by_three_tokens(three, four):
    base, step = "base step as printed: l~_1 - l_n > delta", "as printed: l~_i - l~_i-1 > delta"
    assert three[base].counter_example["inputs"] == three[step].counter_example["inputs"] == [[0, 1, 2]]
    assert four[base].verdict == four[step].verdict == "holds"


def test_the_printed_quantiser_loses_more_than_the_proof_allows_for_wide_tokens():
    findings = by_claim(audit(3, 2, 4))
    assert findings["inputs not treated have measure O(delta^d), k from 0"].verdict == "holds"
    lost = findings["inputs not treated have measure O(delta^d), k from 1 as printed"]
    assert lost.counter_example == {"resolution": 4, "found": "449/512", "bound": "9/16"}


def test_analysis_is_not_claimed_to_be_checked(three):
    unchecked = {name for name, finding in three.items() if finding.verdict == "not checked"}
    assert unchecked == {claim.claim for claim in CLAIMS if claim.check is None}
    assert len(unchecked) == 2


def test_samples_are_said_to_be_samples():
    finding = by_claim(audit(5, 1, 7, limit=20, samples=50))["base step: l~_1 > l_n"]
    assert finding.bounds.exhaustive_up_to == 6
    assert finding.bounds.note == "every input for 1/delta = 5..6; a sample up to 7; not checked beyond"


def test_numbers_beyond_int64_are_checked_too():
    findings = by_claim(audit(9, 1, 10, limit=12, samples=20))
    assert findings[PAIR].verdict == "holds"
    assert findings["marked rows: contextual mapping, second half, over any G"].verdict == "holds"


def test_progress_rises_to_one():
    shares: list[float] = []
    audit(3, 1, 4, told=shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_too_few_cells_are_refused():
    with pytest.raises(TheoryError, match="raise the resolution"):
        audit(5, 1, 4)
