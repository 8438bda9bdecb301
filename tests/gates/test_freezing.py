"""Freezing: units under a budget, and the patterns that gates give."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsebert import gates, patterns
from sparsebert.errors import GateError
from sparsebert.gates import Gate
from sparsebert.gates.freezing import keep_within
from tests.gates.cases import KINDS, trained


def test_units_are_kept_in_the_order_of_their_scores() -> None:
    keep = keep_within(np.array([[3.0, 1.0, 2.0]]), np.array([1, 1, 1]), 2, entries=3)
    assert keep.tolist() == [[True, False, True]]


def test_barred_units_are_never_kept() -> None:
    keep = keep_within(np.array([[-np.inf, 1.0]]), np.array([5, 5]), 10, entries=10)
    assert keep.tolist() == [[False, True]]


def test_the_weakest_unit_gives_way_to_one_that_fits_where_the_budget_is_missed_by_much() -> None:
    # 60 + 60 would miss 100 by 20 of 1000 entries; 60 + 40 does not.
    keep = keep_within(np.array([[3.0, 2.0, 1.0]]), np.array([60, 60, 40]), 100, entries=1000)
    assert keep.tolist() == [[True, False, True]]


def test_without_an_assured_part_the_ranking_alone_decides() -> None:
    scores = np.array([[5.0, 4.0], [1.0, 0.0]])
    assert keep_within(scores, np.array([1, 1]), 2, entries=4, assured=0.0).tolist() == [[True, True], [False, False]]
    assert keep_within(scores, np.array([1, 1]), 2, entries=4, assured=1.0).tolist() == [[True, False], [True, False]]


# Of gates


def test_a_frozen_structured_gate_is_a_list_of_offsets_with_a_border() -> None:
    gate = gates.Structured(length=6, heads=1)
    with torch.no_grad():
        gate.alpha.fill_(-1.0)
        gate.alpha[0, 1] = 1.0
    frozen = gate.freeze()
    expected = "######\n#.#..#\n##.#.#\n#.#.##\n#..#.#\n######"
    assert frozen.picture() == expected
    assert frozen.at(9) == patterns.from_offsets(9, [[-1, 1]], border=True)


@pytest.mark.parametrize("kind", KINDS)
def test_a_target_that_training_has_not_reached_is_not_passed_off_as_learned(kind: type[Gate]) -> None:
    gate = trained(kind, length=40, sparsity=0.8, steps=1000)
    gate.after_step(6)
    with pytest.raises(GateError, match=r"after 7 of 1000 steps .* its target is 0\.800.*freeze\(sparsity=0\.8\)"):
        gate.freeze()
    assert gate.freeze(sparsity=0.8).sparsity == pytest.approx(0.8, abs=0.005)


def test_a_gate_that_reached_its_target_freezes_before_its_last_step(caplog: pytest.LogCaptureFixture) -> None:
    gate = gates.Structured(length=40, heads=2, sparsity=0.8, steps=1000)
    with torch.no_grad():
        gate.alpha.fill_(-2.2)
    assert gate.freeze().sparsity == pytest.approx(0.8, abs=0.005)
    assert not caplog.records


def test_a_gate_that_ends_short_of_its_target_says_so(caplog: pytest.LogCaptureFixture) -> None:
    gate = gates.Structured(length=40, heads=2, sparsity=0.8, steps=3)
    gate.after_step(2)
    assert gate.freeze().sparsity == pytest.approx(0.8, abs=0.005)
    assert "after 3 of 3 steps the gate expects a sparsity of 0.4" in caplog.text


def test_what_is_cut_is_said_whoever_names_the_sparsity(caplog: pytest.LogCaptureFixture) -> None:
    gate = gates.Unstructured(length=12, heads=2, sparsity=0.8, steps=3)
    gate.after_step(2)
    gate.warn_if_cut()
    assert "a sparsity of 0.5" in caplog.text
    assert "to which the pattern is cut" in caplog.text


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"method": "tresholt"}, "method is 'tresholt'; expected one of threshold, sample"),
        ({"diagonal": "dropped"}, "diagonal is 'dropped'; expected one of learned, keep, drop"),
        ({"sparsity": "half"}, "sparsity is 'half'; it must lie between 0 and 1"),
        ({"sparsity": 0.5, "assured": 7}, "assured is 7; it must lie between 0 and 1"),
    ],
)
def test_freezing_refuses_what_it_does_not_know(given: dict[str, Any], words: str) -> None:
    with pytest.raises(GateError, match=words):
        trained(gates.Structured).freeze(**given)


def test_dropping_the_diagonal_takes_the_corners_too_and_keeping_it_forces_it() -> None:
    gate = trained(gates.Structured, length=20)
    n = np.arange(20)
    assert not gate.freeze(diagonal="drop").keep()[:, n, n].any()
    assert gate.freeze(diagonal="keep").keep()[:, n, n].all()
    without = gate.freeze(sparsity=0.7, diagonal="drop")
    assert not without.keep()[:, n, n].any()
    assert without.sparsity == pytest.approx(0.7, abs=0.005)


@settings(max_examples=40)
@given(
    st.sampled_from(KINDS),
    st.sampled_from([(64, 4), (128, 2), (128, 12)]),
    st.floats(0.5, 0.93),
    st.integers(0, 50),
    st.sampled_from(["learned", "drop", "keep"]),
)
def test_freezing_to_a_sparsity_comes_within_half_a_point(
    kind: type[Gate], size: tuple[int, int], sparsity: float, seed: int, diagonal: gates.Diagonal
) -> None:
    gate = trained(kind, *size, seed=seed)
    frozen = gate.freeze(sparsity=sparsity, diagonal=diagonal)
    assert abs(frozen.sparsity - sparsity) <= 0.005
    assert torch.equal(frozen.keep(), frozen.keep().transpose(1, 2))


def test_every_head_gets_its_assured_part() -> None:
    gate = gates.Structured(length=128, heads=4)
    with torch.no_grad():
        gate.alpha[0] = 5.0  # one head would take everything
    frozen = gate.freeze(sparsity=0.8)
    kept = [len(frozen.entries(head)) / 128**2 for head in range(4)]
    assert min(kept) >= 0.03 + 0.5 * 0.17 - 0.016
    assert kept[0] == max(kept)


def test_ties_go_to_the_lower_unit_so_that_freezing_is_deterministic() -> None:
    frozen = gates.Structured(length=40, heads=2).freeze(sparsity=0.8)
    assert frozen == gates.Structured(length=40, heads=2).freeze(sparsity=0.8)
    assert frozen.keep()[:, 5, 6].all()


def test_a_frozen_structured_gate_never_has_an_empty_row() -> None:
    assert trained(gates.Structured, length=40).freeze(sparsity=0.9).keep().any(-1).all()


def test_more_sparsity_than_the_border_leaves_is_refused_with_what_can_be_reached() -> None:
    with pytest.raises(GateError, match=r"at most 0\.969"):
        gates.Structured(length=128, heads=2).freeze(sparsity=0.99)


def test_official_freezes_the_draw_in_use_and_forces_no_border() -> None:
    gate = trained(gates.Structured, settings="official")
    gate.resample(4, 9)
    assert torch.equal(gate.freeze().keep(), gate.values() > 0.5)
    assert gate.alpha.shape == (3, 12)


def test_the_anchor_is_handed_on_to_the_pattern() -> None:
    assert gates.Structured(length=8, heads=1, anchor="token").freeze().anchor == "token"
