"""SQuAD's official definition, case by case, worked out by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsebert.errors import TaskError
from sparsebert.tasks.scoring.squad_metrics import best_over, best_threshold, exact_match, f1, normalised, squad_scores

# text, what is left of it
NORMALISED = [
    ("The Normans", "normans"),
    ("a cat", "cat"),
    ("An apple", "apple"),
    ("THE THE the", ""),
    ("theatre", "theatre"),
    ("the-atre", "theatre"),
    ("U.S.A.", "usa"),
    ("don't", "dont"),
    ("  many   spaces\tand\nlines ", "many spaces and lines"),
    ('"quoted"', "quoted"),
    ("10,000", "10000"),
    ("$5.5 million", "55 million"),
    ("a.m.", "am"),
    ("a. m.", "m"),
    ("naïve café", "naïve café"),
    ("“curly”", "“curly”"),
    ("ÉCOLE", "école"),
    ("Anna and the King", "anna and king"),
    ("well-known", "wellknown"),
    ("---", ""),
    ("", ""),
    ("A", ""),
    ("vitamin A", "vitamin"),
    ("the\u00a0end", "end"),
]
# prediction, true answers, exact match, F1
SCORED = [
    ("France", ["France"], 1, 1.0),
    ("france", ["France"], 1, 1.0),
    ("the France", ["France."], 1, 1.0),
    ("in France", ["France"], 0, 2 / 3),
    ("Paris", ["France"], 0, 0.0),
    ("10th and 11th centuries", ["in the 10th and 11th centuries", "10th and 11th centuries"], 1, 1.0),
    ("the 11th century", ["10th and 11th centuries"], 0, 2 * (1 / 2) * (1 / 4) / (1 / 2 + 1 / 4)),
    ("Denmark, Iceland and Norway", ["Denmark Iceland Norway"], 0, 6 / 7),
    ("Norway and Denmark", ["Denmark and Norway"], 0, 1.0),
    ("blue blue", ["blue"], 0, 2 / 3),
    ("blue", ["blue blue"], 0, 2 / 3),
    ("blue blue red", ["blue red red"], 0, 2 / 3),
    ("", ["France"], 0, 0.0),
    ("", [], 1, 1.0),
    ("France", [], 0, 0.0),
    ("the", [], 1, 1.0),
    ("", ["the"], 1, 1.0),
    ("a", ["an"], 1, 1.0),
    ("$5 million", ["5 million"], 1, 1.0),
    ("5 million dollars", ["5 million"], 0, 4 / 5),
    ("one two three four", ["three four five six"], 0, 1 / 2),
    ("Rollo", ["rollo", "his leader Rollo", "King Rollo"], 1, 1.0),
    ("King Rollo the Great", ["Rollo", "Great King"], 0, 4 / 5),
    ("it's", ["its"], 1, 1.0),
    ("1,000", ["1000"], 1, 1.0),
    ("1 000", ["1000"], 0, 0.0),
    ("e-mail", ["email"], 1, 1.0),
    ("e mail", ["e-mail"], 0, 0.0),
]


@pytest.mark.parametrize(("text", "expected"), NORMALISED)
def test_normalising_leaves_what_the_official_script_leaves(text: str, expected: str) -> None:
    assert normalised(text) == expected


@pytest.mark.parametrize(("predicted", "answers", "exact", "overlap"), SCORED)
def test_scores_follow_the_official_definition(predicted: str, answers: list[str], exact: int, overlap: float) -> None:
    assert best_over(exact_match, predicted, answers) == exact
    assert best_over(f1, predicted, answers) == pytest.approx(overlap)


@given(st.text(), st.text())
def test_f1_is_symmetric_and_never_below_exact_match(one: str, other: str) -> None:
    assert f1(one, other) == pytest.approx(f1(other, one))
    assert exact_match(one, other) <= f1(one, other) <= 1.0


def test_scores_are_means_over_all_questions_in_points() -> None:
    found = squad_scores({"a": "France", "b": "in Oslo"}, {"a": ["France"], "b": ["Oslo"]})
    assert found == {"exact": 50.0, "f1": pytest.approx(100 * (1 + 2 / 3) / 2)}


def test_a_question_without_a_prediction_is_refused() -> None:
    with pytest.raises(TaskError, match="1 of 2 questions"):
        squad_scores({"a": "x"}, {"a": ["x"], "b": ["y"]})


def test_the_best_threshold_separates_what_can_be_separated() -> None:
    answers = {"a": ["Anna"], "b": [], "c": ["Clara"], "d": []}
    forced = {"a": "Anna", "b": "Boris", "c": "Clara", "d": "David"}
    found = best_threshold(exact_match, forced, {"a": -3.0, "b": 2.0, "c": -1.0, "d": 4.0}, answers)
    assert (found.value, found.score) == (-1.0, 100.0)


def test_questions_with_equal_scores_are_answered_together() -> None:
    answers = {"a": ["Anna"], "b": []}
    found = best_threshold(exact_match, {"a": "Anna", "b": "Boris"}, {"a": 0.0, "b": 0.0}, answers)
    assert found.score == 50.0


@given(st.lists(st.tuples(st.integers(-3, 3), st.booleans(), st.booleans()), min_size=1, max_size=12))
def test_no_threshold_serves_better_than_the_best(questions: list[tuple[int, bool, bool]]) -> None:
    answers = {str(k): ["right"] if possible else [] for k, (_, possible, _) in enumerate(questions)}
    forced = {str(k): "right" if right else "wrong" for k, (_, _, right) in enumerate(questions)}
    scores = {str(k): float(value) for k, (value, _, _) in enumerate(questions)}
    best = best_threshold(exact_match, forced, scores, answers)
    for threshold in [-10.0, *scores.values()]:
        given_ = {k: "" if scores[k] > threshold else forced[k] for k in forced}
        assert squad_scores(given_, answers)["exact"] <= best.score + 1e-9
    at_best = {k: "" if scores[k] > best.value else forced[k] for k in forced}
    assert squad_scores(at_best, answers)["exact"] == pytest.approx(best.score)
