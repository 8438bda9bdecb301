from sparsebert.patterns import full, star
from sparsebert.studies.stated_patterns import stated_pattern


def test_words_give_a_named_pattern_with_or_without_its_diagonal_at_any_length() -> None:
    assert stated_pattern({"name": "star", "drop_diagonal": False}, 16, 2) == star(16, 2)
    assert stated_pattern({"name": "full", "drop_diagonal": True}, 16, 2) == full(16, 2).without_diagonal()


def test_a_random_drop_takes_as_many_entries_as_the_diagonal_has_in_every_head() -> None:
    dropped = stated_pattern({"random_drop": 1}, 16, 2)
    assert [len(dropped.entries(head)) for head in range(2)] == [16 * 15, 16 * 15]
    assert dropped != stated_pattern({"random_drop": 2}, 16, 2)
