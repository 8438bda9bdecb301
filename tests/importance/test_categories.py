"""Importance by category: what is counted where, intervals, the sentence."""

import numpy as np

from sparsebert.importance.categories import NAMES, categories, tabulate


def symbols(length: int) -> str:
    marks = dict(zip(NAMES, "d123CS.", strict=True))
    return "\n".join("".join(marks[NAMES[number]] for number in row) for row in categories(length))


def test_every_entry_has_one_category_and_the_border_comes_first() -> None:
    assert symbols(9) == "\n".join(
        [
            "CCCCCCCCC",
            "Cd12333.S",
            "C1d12333S",
            "C21d1233S",
            "C321d123S",
            "C3321d12S",
            "C33321d1S",
            "C.33321dS",
            "CSSSSSSSS",
        ]
    )


def planted(diagonal: float, neighbours: float, noise: float = 0.001) -> np.ndarray:
    number = categories(20)
    values = np.full((12, 20, 20), 0.5)
    values[:, number == NAMES.index("diagonal")] = diagonal
    values[:, number == NAMES.index("±1")] = neighbours
    return values + noise * np.random.default_rng(0).standard_normal((12, 1, 1))


def test_what_all_categories_of_a_head_share_does_not_widen_the_difference() -> None:
    table = tabulate(planted(0.45, 0.6, noise=0.2))
    assert table["±2"].above_low > 0.049
    assert table.diagonal_is_lowest
    assert "its interval still overlaps" in table.verdict()


def test_means_ranks_and_intervals_are_those_of_what_was_planted() -> None:
    table = tabulate(planted(0.4, 0.6))
    assert [row.name for row in table.rows] == list(NAMES)
    assert abs(table["diagonal"].mean - 0.4) < 0.001
    assert table["±1"].rank == 1
    assert table["diagonal"].rank == 7
    assert all(row.low <= row.mean <= row.high for row in table.rows)
    assert sum(row.entries for row in table.rows) == 400


def test_the_interval_shrinks_to_a_point_when_heads_agree() -> None:
    row = tabulate(planted(0.4, 0.6, noise=0.0))["diagonal"]
    assert row.high - row.low < 1e-12


def test_the_sentence_says_what_the_table_says() -> None:
    lowest = tabulate(planted(0.4, 0.6))
    assert lowest.diagonal_is_lowest
    assert "overlaps" not in lowest.verdict()
    assert "the most important is ±1" in lowest.verdict()
    assert lowest.verdict().startswith("The diagonal is the least important here")
    values = planted(0.499, 0.6)
    values[:6, categories(20) == NAMES.index("±2")] = 0.45
    values[6:, categories(20) == NAMES.index("±2")] = 0.56
    unsettled = tabulate(values)
    assert not unsettled.diagonal_is_lowest
    assert "does not settle it" in unsettled.verdict()
    highest = tabulate(planted(0.7, 0.6))
    assert highest.verdict().startswith("The diagonal is not the least important here: it ranks 1 of 7")


def test_the_same_seed_gives_the_same_table() -> None:
    assert tabulate(planted(0.4, 0.6), 3) == tabulate(planted(0.4, 0.6), 3)
    assert "diagonal    0.4" in tabulate(planted(0.4, 0.6)).as_text()


def test_a_notebook_shows_the_table_and_what_it_says() -> None:
    table = tabulate(planted(0.45, 0.6))
    shown = table._repr_html_()
    assert shown.startswith("<pre>")
    assert "diagonal" in shown
    assert table.verdict().split(":")[0] in shown
