"""Schedules are pure functions of the step."""

import pytest

from sparsebert.errors import GateError
from sparsebert.gates import Schedule, constant


def test_a_linear_schedule_is_led_to_its_end_over_its_share_and_stays() -> None:
    schedule = Schedule("linear", 1.0, 0.0, share=0.5)
    assert [schedule.at(step, 100) for step in (0, 25, 50, 99)] == [1.0, 0.5, 0.0, 0.0]


def test_an_exponential_schedule_halves_in_equal_times() -> None:
    schedule = Schedule("exponential", 4.0, 1.0)
    assert [schedule.at(step, 10) for step in (0, 5, 10)] == [4.0, 2.0, 1.0]


def test_a_constant_one_does_not_move() -> None:
    assert {constant(0.7).at(step, 10) for step in range(12)} == {0.7}


@pytest.mark.parametrize("wrong", [("cosine", 1, 0, 1), ("linear", 1, 0, 0), ("exponential", 1, 0, 1)])
def test_schedules_that_cannot_be_are_refused(wrong: tuple[str, float, float, float]) -> None:
    with pytest.raises(GateError):
        Schedule(*wrong)  # type: ignore[arg-type]
