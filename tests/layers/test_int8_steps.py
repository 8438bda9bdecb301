"""Several calls in one give what they give one by one, and the first that is refused ends them."""

import pytest
import torch
from hypothesis import given, settings

from sparsebert.errors import LayerError
from sparsebert.layers import linear
from sparsebert.layers.int8_kernel import prepared, room
from sparsebert.layers.int8_steps import Steps
from tests.layers.cases import Case, cases


@settings(max_examples=40, deadline=None)
@given(cases())
def test_steps_give_what_calls_one_by_one_give(case: Case) -> None:
    first, (residual, norm) = case.layer().packed, case.more()
    second = Case(case.rows, case.outputs, 7, None, False, False, 0, 1.0, case.seed).layer().packed
    between, last = room(case.rows, case.outputs, codes=True), room(case.rows, 7)
    one = prepared(case.values(), first, between, activation=case.activation, residual=residual, norm=norm)
    steps = Steps([one, prepared(between.codes, second, last)])
    expected = linear(case.values(), first, activation=case.activation, residual=residual, norm=norm, codes=True)
    for _ in range(2):  # the same memory, read and written again
        last.values.fill_(7.0)
        steps.run()
        assert torch.equal(between.codes.codes, expected.codes.codes)
        torch.testing.assert_close(last.values, linear(expected.codes, second).values, rtol=0, atol=0, equal_nan=True)


def test_the_first_step_that_is_refused_ends_them() -> None:
    case = Case(5, 8, 6, None, False, False, 0, 1.0, 0)
    layer, results = case.layer().packed, [room(5, 6) for _ in range(3)]
    calls = [prepared(case.values(), layer, each) for each in results]
    calls[1].rows = 6
    for each in results:
        each.values.fill_(7.0)
    with pytest.raises(LayerError, match="smaller than its shape"):
        Steps(calls).run()
    assert not bool((results[0].values == 7.0).any())
    assert all(bool((each.values == 7.0).all()) for each in results[1:])
