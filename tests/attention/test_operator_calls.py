"""A small part of the operator's fuzzing; `make sanitize` and row S6 of the scorecard run it at length, under ASan."""

import pytest
from hypothesis import given, settings

from sparsebert.attention.sparse_library import is_built
from tests.attention.operator_calls import OperatorCall, make, make_spoiled, operator_calls, spoiled_structures

pytestmark = pytest.mark.skipif(not is_built(), reason="the C++ kernel was not built: no C++ compiler")


@settings(max_examples=150)
@given(operator_calls())
def test_a_call_is_right_or_refused(call: OperatorCall) -> None:
    assert make(call) == ("right" if call.fault is None else "refused")


@settings(max_examples=150)
@given(spoiled_structures())
def test_a_structure_that_does_not_fit_is_answered_with_a_code(spoiled: tuple[int, list[tuple[str, int]]]) -> None:
    assert make_spoiled(*spoiled) in ("right", "refused")
