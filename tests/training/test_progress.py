import pytest

from sparsebert.training.progress import Bar, Lines, for_this_terminal


def test_lines_are_few_and_say_what_matters(capsys: pytest.CaptureFixture[str]) -> None:
    lines = Lines("pretrain")
    lines.start(10, 13)
    for step in (11, 12, 13):
        lines.step({"step": step, "loss": 2.5, "sparsity": 0.93}, 1234.0)
    lines.stop()
    shown = capsys.readouterr().err.splitlines()
    assert shown[0] == "pretrain: resumed after step 10 of 13"
    assert shown[1].startswith("pretrain: step 11 of 13, loss 2.5, sparsity 0.93, 1,234 tokens/s")
    assert shown[2].startswith("pretrain: step 13 of 13")
    assert len(shown) == 3


def test_a_bar_takes_a_loss_that_is_not_finite() -> None:
    bar = Bar("pretrain")
    bar.start(0, 2)
    bar.step({"step": 1, "loss": None}, 10.0)
    bar.stop()
    assert bar.bar.tasks[0].completed == 1


def test_without_a_terminal_there_is_no_bar() -> None:
    assert isinstance(for_this_terminal("pretrain"), Lines)
