"""Numbers in words."""

from sparsebert.report.rendering.tables import Cell, said, signed


def test_negative_numbers_have_a_minus_sign_and_tiny_ones_a_digit() -> None:
    assert said(-2.72, 1) == "\N{MINUS SIGN}2.7"
    assert signed(-0.00031, "nats") == "\N{MINUS SIGN}0.0003"
    assert signed(0.0, "points") == "+0.00"


def test_half_an_interval_has_the_digits_of_its_value() -> None:
    assert Cell(1.0, interval=(0.5, 1.75), digits=2).half_width == "0.62"
    assert Cell(1.0).half_width is None
    assert Cell("1e-5", interval=(0.5, 1.75)).half_width is None
