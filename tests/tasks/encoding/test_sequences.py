"""Sequences of many lengths, and batches padded no further than needed."""

import numpy as np
import pytest
from tokenizers import Tokenizer

from sparsebert.errors import TaskError
from sparsebert.tasks.encoding.encoded_rows import make_items
from sparsebert.tasks.encoding.sequences import encode_pairs
from sparsebert.tasks.files.rows import ChoiceRow, TextRow
from sparsebert.tasks.table import find_task
from sparsebert.text import load_tokenizer


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return load_tokenizer("minilm")


def test_a_batch_is_padded_to_its_own_longest_sequence(tokenizer: Tokenizer) -> None:
    sequences = encode_pairs(tokenizer, [("one", "two three"), ("one two",), ("a b c d e f", "g h")], 128)
    assert sequences.lengths.tolist() == [6, 4, 11]
    batch = sequences.batch(np.array([1, 0]))
    assert batch.input_ids.tolist() == [[101, 2028, 2048, 102, 0, 0], [101, 2028, 102, 2048, 2093, 102]]
    assert batch.token_type_ids.tolist() == [[0, 0, 0, 0, 0, 0], [0, 0, 0, 1, 1, 1]]
    assert batch.padding().tolist() == [[1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1]]


def test_tokens_are_those_of_transformers_own_tokenizer(tokenizer: Tokenizer) -> None:
    from transformers import BertTokenizer

    from sparsebert.model.sources import model_folder

    theirs = BertTokenizer.from_pretrained(model_folder("minilm"))
    pairs = [('He said "well', "naïve café 100 %"), ("x " * 90, "y z " * 60), ("short", "long " * 200)]
    ours = encode_pairs(tokenizer, pairs, 64)
    for index, (first, second) in enumerate(pairs):
        expected = theirs(first, second, truncation=True, max_length=64)
        batch = ours.batch(np.array([index]))
        assert batch.input_ids[0].tolist() == expected["input_ids"]
        assert batch.token_type_ids[0].tolist() == expected["token_type_ids"]


def test_the_name_of_a_special_token_in_a_text_stays_text(tokenizer: Tokenizer) -> None:
    sequences = encode_pairs(tokenizer, [("the [SEP] token",)], 32)
    assert sequences.ids.tolist().count(102) == 1


def test_four_endings_are_one_item(tokenizer: Tokenizer) -> None:
    rows = [ChoiceRow(str(k), "He runs.", "He", ("a", "b c d", "e", "f"), k) for k in range(3)]
    items = make_items(find_task("swag"), rows, tokenizer, 32)
    assert (len(items), items.each, len(items.sequences)) == (3, 4, 12)
    assert items.batch(np.array([1])).input_ids.shape[0] == 4
    assert items.labels is not None
    assert items.labels.tolist() == [0, 1, 2]


def test_rows_without_all_labels_have_none(tokenizer: Tokenizer) -> None:
    rows = [TextRow("0", "a", None, 1), TextRow("1", "b", None, None)]
    assert make_items(find_task("sst2"), rows, tokenizer, 16).labels is None


def test_rows_of_another_kind_and_tiny_lengths_are_refused(tokenizer: Tokenizer) -> None:
    with pytest.raises(TaskError, match="TextRow was given where a ChoiceRow"):
        make_items(find_task("swag"), [TextRow("0", "a")], tokenizer, 32)
    with pytest.raises(TaskError, match="at least 8"):
        make_items(find_task("sst2"), [TextRow("0", "a")], tokenizer, 4)
    with pytest.raises(TaskError, match="no rows"):
        make_items(find_task("sst2"), [], tokenizer, 32)
