import pytest

from sparsebert.studies.progress import Bar, Lines, duration, for_this_terminal
from sparsebert.studies.runs import Condition, Run

RUN = Run("adapt", {}, 0, 1, {}, (), Condition("handmade", "star"))


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(3.2, "3 s"), (150, "2 min"), (7200, "2.0 h"), (90 * 3600, "90.0 h"), (30 * 86_400, "30 days")],
)
def test_a_duration_is_said_as_people_say_it(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_lines_are_written_for_the_first_and_the_last_run_only_when_all_is_quick(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = Lines("study all")
    lines.start(3, 30.0)
    for left in (20.0, 10.0, 0.0):
        lines.done(RUN, left)
    lines.stop()
    assert capsys.readouterr().err.splitlines() == [
        "study all: 3 runs to make, about 30 s",
        "study all: 3 of 3 runs, 0 s left; last: adapt star",
    ]


def test_a_bar_is_drawn_on_terminals_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert isinstance(for_this_terminal("study"), Lines)
    bar = Bar("study")
    bar.start(1, 5.0)
    bar.done(RUN, 0.0)
    bar.stop()
    assert "adapt star" in capsys.readouterr().err
