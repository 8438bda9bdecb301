"""Windows show every token of a context, and spans come back as the characters they are."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from sparsebert.errors import TaskError
from sparsebert.tasks.encoding.windows import SHORTEST, encode_questions, window_starts
from sparsebert.tasks.files.rows import Answer, QuestionRow
from sparsebert.tasks.scoring.spans import predict_spans
from sparsebert.text import load_tokenizer

CONTEXT = (
    "Café Zoë, opened in 1874 by Ærøskøbing's mayor — a friend of Anna-Maria — stood near the old mill. "
    "It burned down twice; the second fire (1901) spared only the kitchen, where 42 cooks worked. "
) * 6


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return load_tokenizer("minilm")


@given(st.integers(0, 2000), st.integers(1, 400), st.integers(1, 400))
def test_windows_cover_a_context_and_none_is_inside_another(num_tokens: int, room: int, stride: int) -> None:
    starts = window_starts(num_tokens, room, stride)
    seen = {token for start in starts for token in range(start, min(start + room, num_tokens))}
    assert seen == set(range(num_tokens))
    ends = [min(start + room, num_tokens) for start in starts]
    assert all(one < other for one, other in itertools.pairwise(ends))


@pytest.mark.parametrize(
    "text", ["1874", "Zoë", "Anna-Maria", "the second fire (1901)", "42 cooks", "Ærøskøbing's mayor"]
)
@pytest.mark.parametrize("length", [SHORTEST, 128, 384])
def test_a_perfect_model_gives_the_answer_back_from_any_window(tokenizer: Tokenizer, text: str, length: int) -> None:
    start = CONTEXT.rindex(text)
    row = QuestionRow("q", "What was it?", CONTEXT, (Answer(text, start),))
    sequences, windows = encode_questions(tokenizer, [row], length, 32)
    assert any(window.span != (0, 0) for window in windows)
    scores = []
    for window, size in zip(windows, sequences.lengths, strict=True):
        score = np.full((size, 2), -5.0)
        score[window.span[0], 0] = score[window.span[1], 1] = 5.0
        scores.append(score)
    (found,) = predict_spans([row], windows, scores)
    assert (found.candidates[0].text, found.candidates[0].start) == (text, start)
    assert found.text(threshold=0.0) == text


def test_sequences_are_the_question_and_a_part_of_the_context(tokenizer: Tokenizer) -> None:
    row = QuestionRow("q", "Who came?", "Anna came.", (Answer("Anna", 0),))
    sequences, windows = encode_questions(tokenizer, [row], 128, 64)
    batch = sequences.batch(np.array([0]))
    tokens = [tokenizer.id_to_token(number) for number in batch.input_ids[0].tolist()]
    assert tokens == ["[CLS]", "who", "came", "?", "[SEP]", "anna", "came", ".", "[SEP]"]
    assert batch.token_type_ids[0].tolist() == [0, 0, 0, 0, 0, 1, 1, 1, 1]
    assert windows[0].span == (5, 5)


def test_an_answer_that_a_window_cuts_is_not_trained_there(tokenizer: Tokenizer) -> None:
    text = CONTEXT[:900]
    row = QuestionRow("q", "What?", CONTEXT, (Answer(text, 0),))
    assert all(window.span == (0, 0) for window in encode_questions(tokenizer, [row], SHORTEST, 32)[1])


def test_no_answer_wins_only_above_the_threshold(tokenizer: Tokenizer) -> None:
    row = QuestionRow("q", "Who?", "Anna came.")
    sequences, windows = encode_questions(tokenizer, [row], 128, 64)
    score = np.zeros((int(sequences.lengths[0]), 2))
    score[0] = 2.0
    (found,) = predict_spans([row], windows, [score])
    assert found.no_answer == 4.0
    assert found.text(threshold=3.9) == ""
    assert found.text(threshold=4.0) != ""
    assert found.text() != ""


def test_a_context_of_nothing_the_tokenizer_knows_gives_no_candidates(tokenizer: Tokenizer) -> None:
    row = QuestionRow("q", "Who?", "\u200b\u200b")
    sequences, windows = encode_questions(tokenizer, [row], 128, 64)
    (found,) = predict_spans([row], windows, [np.zeros((int(sequences.lengths[0]), 2))])
    assert found.text() == ""


def test_windows_too_short_for_a_question_are_refused(tokenizer: Tokenizer) -> None:
    row = QuestionRow("q", "Who?", "Anna came.")
    with pytest.raises(TaskError, match=f"at least {SHORTEST}"):
        encode_questions(tokenizer, [row], 64, 32)
    with pytest.raises(TaskError, match="stride of 0"):
        encode_questions(tokenizer, [row], 128, 0)
