"""Where sentences end, and where they only seem to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsebert.text.sentences import split_sentences


@pytest.mark.parametrize(
    ("paragraph", "expected"),
    [
        ("It rained. We stayed in.", ["It rained.", "We stayed in."]),
        ("Is it? Yes! Good.", ["Is it?", "Yes!", "Good."]),
        ("Mr. Smith met Dr. Jones. They talked.", ["Mr. Smith met Dr. Jones.", "They talked."]),
        ("J. R. R. Tolkien wrote it. It is long.", ["J. R. R. Tolkien wrote it.", "It is long."]),
        ("So do I. Let us go.", ["So do I.", "Let us go."]),
        ("The U.S. Army came to the U.S. The war ended.", ["The U.S. Army came to the U.S.", "The war ended."]),
        ("See fig. 3 and no. 4. He said no. Then he left.", ["See fig. 3 and no. 4.", "He said no.", "Then he left."]),
        ("He paid 3.50 for it. Fine.", ["He paid 3.50 for it.", "Fine."]),
        ('"What?" he said. "Go away!" She went.', ['"What?" he said.', '"Go away!"', "She went."]),
        ("“Stop.” “Why?” asked Tom.", ["“Stop.”", "“Why?” asked Tom."]),
        ("Fruit, e.g. Apples, i.e. Food.", ["Fruit, e.g. Apples, i.e. Food."]),
        ("Wait... Then it came... and went.", ["Wait...", "Then it came... and went."]),
        ("(It was so.) Nobody knew.", ["(It was so.)", "Nobody knew."]),
        ("In 1990. 2,000 people came.", ["In 1990.", "2,000 people came."]),
        ("吾輩は猫である。名前はまだ無い。", ["吾輩は猫である。", "名前はまだ無い。"]),
        ("no end mark at all", ["no end mark at all"]),
        ("Revolution.Whilst unspaced", ["Revolution.Whilst unspaced"]),
        ("   ", []),
    ],
)
def test_sentences_end_where_a_reader_would_end_them(paragraph: str, expected: list[str]) -> None:
    assert split_sentences(paragraph) == expected


@given(st.text(alphabet=st.sampled_from(list("aAI.!?…。\"'”() \t1\u00a0émMr")), max_size=60))
def test_no_character_but_white_space_is_lost(paragraph: str) -> None:
    sentences = split_sentences(paragraph)
    assert "".join("".join(sentences).split()) == "".join(paragraph.split())
    assert all(sentence and sentence == sentence.strip() for sentence in sentences)


def test_a_paragraph_of_full_stops_takes_linear_time() -> None:
    assert len(split_sentences("A. " * 100_000)) >= 1
    assert len(split_sentences("." * 500_000)) == 1
    assert len(split_sentences('."' * 250_000)) == 1
