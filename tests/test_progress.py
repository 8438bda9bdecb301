import pytest

from sparsebert.progress import Bar, Lines, duration, for_this_terminal


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(3.2, "3 s"), (150, "2 min"), (7200, "2.0 h"), (90 * 3600, "90.0 h"), (30 * 86_400, "30 days")],
)
def test_a_duration_is_said_as_people_say_it(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_lines_are_written_for_the_first_and_the_last_step_only_when_all_is_quick(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = Lines("pretrain")
    lines.start(10, 13)
    for step in (11, 12, 13):
        lines.step(step, "loss 2.5", 13.0 - step)
    lines.stop()
    assert capsys.readouterr().err.splitlines() == [
        "pretrain: resumed after step 10 of 13",
        "pretrain: step 11 of 13, loss 2.5, 2 s left",
        "pretrain: step 13 of 13, loss 2.5, 0 s left",
    ]


def test_a_bar_is_drawn_on_terminals_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert isinstance(for_this_terminal("study"), Lines)
    bar = Bar("study")
    bar.start(0, 2)
    bar.step(1, "adapt star", 5.0)
    bar.stop()
    assert bar.bar.tasks[0].completed == 1
    assert "adapt star, 5 s left" in capsys.readouterr().err
