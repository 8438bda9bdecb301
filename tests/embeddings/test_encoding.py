"""Embeddings are what the model's folder says, whatever texts stand beside them."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoTokenizer

from sparsebert import encode, load_model, patterns, sparsify
from sparsebert.embeddings import Encoder
from sparsebert.embeddings.batching import batches_by_length
from sparsebert.embeddings.encoding import encode_texts
from sparsebert.errors import ConfigError, ModelError, SparseBertError
from sparsebert.files import read_json, write_json
from tests.model.sentence_cases import TEXTS, tiny_sentence_folder

LONG = " ".join(TEXTS)  # 99 words
EXPLICIT = patterns.from_keep(patterns.star(16).keep())
BORDER = patterns.from_offsets(length=16, offsets=[[-1, 1], [2]], border=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_sentence_folder(tmp_path_factory.mktemp("sentences"))


def by_hand(folder: Path, text: str, length: int = 40) -> np.ndarray:
    """The mean of the states of one text alone, of unit length."""
    ids = AutoTokenizer.from_pretrained(folder)(text, truncation=True, max_length=length, return_tensors="pt")
    with torch.no_grad():
        mean = load_model(folder).eval()(input_ids=ids["input_ids"])[0][0].mean(0)
    return (mean / mean.norm()).numpy()


def test_an_embedding_is_the_mean_of_the_states_of_unit_length(folder: Path) -> None:
    made = encode([*TEXTS, LONG], folder)
    assert made.shape == (7, 16)
    assert made.dtype == np.float32
    for text, vector in zip([*TEXTS, LONG], made, strict=True):
        np.testing.assert_allclose(vector, by_hand(folder, text), atol=1e-6)


def test_pooling_and_normalising_are_as_the_folder_says(tmp_path: Path) -> None:
    source = tiny_sentence_folder(tmp_path / "cls", pooling="cls", normalised=False)
    ids = AutoTokenizer.from_pretrained(source)(TEXTS[1], return_tensors="pt")["input_ids"]
    with torch.no_grad():
        first = load_model(source).eval()(input_ids=ids)[0][0, 0]
    np.testing.assert_allclose(encode(TEXTS[1:2], source)[0], first.numpy(), atol=1e-5)
    with pytest.raises(ConfigError, match="first token"):
        encode(TEXTS, source, chunks=8)


@pytest.mark.parametrize("pattern", [None, "star", EXPLICIT, BORDER], ids=["dense", "star", "explicit", "border"])
def test_an_embedding_does_not_depend_on_the_batch(folder: Path, pattern: patterns.Pattern | str | None) -> None:
    texts = [*TEXTS, LONG, ""]
    encoder = Encoder(folder, pattern=pattern)
    together = encode_texts(encoder, texts).embeddings
    for batch_tokens in (1, 60):
        np.testing.assert_allclose(
            encode_texts(encoder, texts, batch_tokens=batch_tokens).embeddings, together, atol=1e-6
        )
    for text, vector in zip(texts, together, strict=True):
        np.testing.assert_allclose(encode_texts(encoder, [text]).embeddings[0], vector, atol=1e-6)


def test_long_texts_are_cut_where_the_model_ends_and_counted(folder: Path) -> None:
    for pattern, length, expected in ((None, None, 40), (EXPLICIT, None, 16), (BORDER, 64, 64), (None, 20, 20)):
        encoder = Encoder(folder, pattern=pattern, length=length)
        made = encode_texts(encoder, [TEXTS[0], LONG])
        assert encoder.length == expected
        assert (made.num_cut, len(made.tokens[1].ids)) == (1, expected)


def test_a_folder_that_names_no_limit_is_read_as_far_as_the_model_goes(tmp_path: Path) -> None:
    source = tiny_sentence_folder(tmp_path / "endless", length=10**30)
    assert Encoder(source).length == 64
    assert Encoder(source, pattern="star").model.pattern == patterns.star(64, heads=2)


def test_a_pattern_in_place_of_an_own_one_does_not_cut_texts_where_that_ended(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "sparse")
    sparsify(load_model(folder), EXPLICIT).save_pretrained(tmp_path / "sparse")
    assert Encoder(tmp_path / "sparse").length == 16
    assert Encoder(tmp_path / "sparse", pattern="star").length == 40


def test_chunks_are_means_over_the_states_of_the_whole_text(folder: Path) -> None:
    (chunks,) = encode([TEXTS[5]], folder, chunks=7)
    words = TEXTS[5].split()
    read = [TEXTS[5][one.start : one.end] for one in chunks]
    assert " ".join(read).split() == words
    encoder = Encoder(folder)
    (tokens,) = encoder.tokens([TEXTS[5]], 7)
    assert sum(one.tokens for one in chunks) == len(tokens.ids)
    with torch.no_grad():
        states = encoder.model(input_ids=torch.tensor([tokens.ids]))[0][0]
    first = 0
    for one in chunks:
        mean = states[first : first + one.tokens].mean(0)
        np.testing.assert_allclose(one.embedding, (mean / mean.norm()).numpy(), atol=1e-6)
        first += one.tokens


def test_a_text_of_one_chunk_has_the_embedding_of_the_whole(folder: Path) -> None:
    whole = encode(TEXTS, folder)
    for vector, chunks in zip(whole, encode(TEXTS, folder, chunks=100), strict=True):
        assert len(chunks) == 1
        np.testing.assert_allclose(chunks[0].embedding, vector, atol=1e-7)


def test_a_prompt_of_the_folder_stands_before_every_text(folder: Path, tmp_path: Path) -> None:
    source = tiny_sentence_folder(tmp_path / "prompted")
    about = {"prompts": {"query": "water stone "}, "default_prompt_name": "query"}
    write_json(source / "config_sentence_transformers.json", about)
    np.testing.assert_allclose(encode(["rain"], source), encode(["water stone rain"], folder), atol=1e-6)
    assert [(one.start, one.end) for one in encode(["rain hill"], source, chunks=100)[0]] == [(0, 9)]


def test_int8_is_near_float32(folder: Path) -> None:
    near = (encode(TEXTS, folder, precision="int8") * encode(TEXTS, folder)).sum(1)
    assert near.min() > 0.98
    assert near.max() < 1 + 1e-5


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"precision": "fp8"}, "there is no precision"),
        ({"length": 65}, "takes 3 to 64 tokens"),
        ({"length": 17, "pattern": EXPLICIT}, "takes 3 to 16 tokens"),
        ({"pattern": "stare"}, "there is no pattern called"),
        ({"chunks": 0}, "at least one token"),
        ({"batch_tokens": 0}, "at least one token"),
    ],
)
def test_a_wrong_argument_is_one_sentence(folder: Path, given: dict, said: str) -> None:
    with pytest.raises(SparseBertError, match=said):
        encode(TEXTS, folder, **given)


def test_what_is_no_list_of_texts_is_refused(folder: Path) -> None:
    for texts in ("one text", [1, 2], []):
        with pytest.raises(ConfigError, match="text"):
            encode(texts, folder)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="no weights yet"):
        encode(TEXTS, "scratch:tiny")


def test_parts_that_are_not_known_are_refused(tmp_path: Path) -> None:
    source = tiny_sentence_folder(tmp_path / "dense")
    modules = read_json(source / "modules.json")
    write_json(source / "modules.json", [*modules, {**modules[1], "type": "sentence_transformers.models.Dense"}])
    with pytest.raises(ModelError, match="has a part Dense"):
        encode(TEXTS, source)
    write_json(source / "modules.json", [*modules, {**modules[1], "type": "elsewhere.Evil"}])
    with pytest.raises(ModelError, match="code of its own"):
        encode(TEXTS, source)
    write_json(source / "modules.json", [*modules, {**modules[1], "path": "../other"}])
    with pytest.raises(ModelError, match="inside the model's"):
        encode(TEXTS, source)


def test_batches_hold_every_text_once_and_few_tokens() -> None:
    lengths = [5, 30, 7, 100, 7, 1]
    batches = list(batches_by_length(lengths, 40))
    assert batches == [[3], [1], [2, 4, 0, 5]]


@pytest.mark.parametrize("pattern", [None, BORDER], ids=["dense", "border"])
def test_packed_and_padded_texts_have_the_same_embeddings(folder: Path, pattern: patterns.Pattern | None) -> None:
    encoder = Encoder(folder, pattern=pattern)
    assert encoder.packs
    packed = encode_texts(encoder, [*TEXTS, LONG]).embeddings
    encoder.packs = False
    np.testing.assert_allclose(packed, encode_texts(encoder, [*TEXTS, LONG]).embeddings, atol=1e-6)


def test_a_packed_batch_counts_its_tokens_and_a_padded_one_its_padding_too() -> None:
    lengths = [2, 9, 3, 4, 2]
    assert list(batches_by_length(lengths, 13, packed=True)) == [[1, 3], [2, 0, 4]]
    assert list(batches_by_length(lengths, 13)) == [[1], [3, 2, 0], [4]]
