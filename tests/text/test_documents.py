"""Every kind of bad input is named with its file and line, or counted; nothing else is ever raised."""

import gzip
import json
import re
import tempfile
from collections import Counter
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from sparsebert.errors import CorpusError, SparseBertError
from sparsebert.text import TokenStore, prepare_corpus
from sparsebert.text.blocks import Block
from sparsebert.text.documents import MAX_LINE_BYTES, Complaints, documents
from tests.text.conftest import PLAIN, Prepare

GOOD = b'{"text": "The cat sat. It ran."}\n'
LONG = b"a cat sat " * (MAX_LINE_BYTES // 10 + 1)
PACKED = gzip.compress(PLAIN * 40, mtime=0)
ZSTD = zstandard.ZstdCompressor().compress(PLAIN * 40)

# (file name, its bytes, the line that must be named, words of the message, what --skip-bad-lines counts)
LINES = [
    ("latin1.txt", PLAIN + b"\nNew\nCaf\xe9 is open. It is.\n", 8, "is not valid UTF-8", "invalid_utf8"),
    ("cut.txt", PLAIN + b"\nNew\nCats. Dogs. \xe2\x82\n", 8, "is not valid UTF-8", "invalid_utf8"),
    ("overlong.txt", b"New\nCats. \xc0\xaf Dogs.\n\n" + PLAIN, 2, "is not valid UTF-8", "invalid_utf8"),
    ("beyond.txt", b"New\nCats. \xf5\x80\x80\x80 Dogs.\n\n" + PLAIN, 2, "is not valid UTF-8", "invalid_utf8"),
    ("utf16le.txt", PLAIN + "\nNew\n".encode("utf-16-le"), 7, "UTF-16", "nul_byte"),
    ("nul.txt", b"Cats\nThe \0cat. It sat.\nIt ran.\n\n" + PLAIN, 2, "NUL byte", "nul_byte"),
    ("surrogate.txt", PLAIN + b"\nNew\nCats \xed\xa0\x80. Dogs.\n", 8, "surrogate", "lone_surrogate"),
    ("long.txt", PLAIN + b"\nNew\n" + LONG + b"\n", 8, "is longer than", "line_too_long"),
    ("first_line.txt", LONG + b"\n\n" + PLAIN, 1, "is longer than", "line_too_long"),
    ("one.txt", PLAIN + b"\nOnly one sentence here\n\n" + PLAIN, 7, "document of one sentence", "one_sentence"),
    ("controls.txt", b"\x01\x02\nThe cat sat.\n\n" + PLAIN, 1, "document of one sentence", "one_sentence"),
    ("broken.jsonl", GOOD + b'{"text": "The cat\n' + GOOD, 2, "is not valid JSON", "bad_json"),
    ("single.jsonl", GOOD + b"{'text': 'The cat.'}\n", 2, "is not valid JSON", "bad_json"),
    ("two.jsonl", GOOD + GOOD.strip() + GOOD, 2, "is not valid JSON", "bad_json"),
    ("deep.jsonl", GOOD + b"[" * 200_000 + b"\n", 2, "is not valid JSON", "bad_json"),
    ("digits.jsonl", GOOD + b'{"text": ' + b"1" * 10_000 + b"}\n", 2, "is not valid JSON", "bad_json"),
    ("list.jsonl", GOOD + b'["The cat sat. It ran."]\n', 2, "found a list", "not_an_object"),
    ("string.jsonl", GOOD + b'"The cat sat."\n', 2, "found a string", "not_an_object"),
    ("null.jsonl", GOOD + b"null\n", 2, "found null", "not_an_object"),
    ("nofield.jsonl", GOOD + b'{"body": "The cat sat."}\n', 2, "no field called text", "no_text"),
    ("twice.jsonl", GOOD + b'{"text": "A. B.", "text": "C. D."}\n', 2, "two fields called text", "repeated_text"),
    ("number.jsonl", GOOD + b'{"text": 3}\n', 2, "found a number", "text_not_string"),
    ("nothing.jsonl", GOOD + b'{"text": null}\n', 2, "found null", "text_not_string"),
    ("nested.jsonl", GOOD + b'{"text": {"text": "A. B."}}\n', 2, "found an object", "text_not_string"),
    ("blank.jsonl", GOOD + b'{"text": " \\n "}\n', 2, "without any word", "empty_text"),
    ("half.jsonl", GOOD + b'{"text": "A cat \\ud83d sat. It ran."}\n', 2, "surrogate", "lone_surrogate"),
    ("zero.jsonl", GOOD + b'{"text": "A cat \\u0000 sat. It ran."}\n', 2, "NUL byte", "nul_byte"),
    ("bytes.jsonl", GOOD + b'{"text": "Caf\xe9. It ran."}\n', 2, "is not valid UTF-8", "invalid_utf8"),
    ("wide.jsonl", GOOD + b'{"text": "' + LONG + b'"}\n', 2, "is longer than", "line_too_long"),
    ("short.jsonl", GOOD + b'{"text": "One sentence"}\n', 2, "document of one sentence", "one_sentence"),
]
FILES = [
    ("empty.txt", b"", "no document was found"),
    ("blanks.txt", b"\n \n\t\n\r\n\n", "no document was found"),
    ("empty.jsonl", b"\n\n", "no document was found"),
    ("cut.txt.gz", PACKED[:-20], "damaged gzip"),
    ("tail.txt.gz", PACKED + b"tail", "damaged gzip"),
    ("flipped.txt.gz", PACKED[:-6] + bytes([PACKED[-6] ^ 1]) + PACKED[-5:], "damaged gzip"),
    ("not.txt.gz", PLAIN, "damaged gzip"),
    ("empty.txt.gz", b"", "empty file"),
    ("cut.txt.zst", ZSTD[:-5], "damaged zstd"),
    ("not.txt.zst", PLAIN, "damaged zstd"),
    ("empty.txt.zst", b"", "damaged zstd"),
    ("unknown.csv", PLAIN, "does not say what it holds"),
    ("noname", PLAIN, "does not say what it holds"),
]


@pytest.mark.parametrize(("name", "data", "line", "words", "reason"), LINES, ids=[case[0] for case in LINES])
def test_a_bad_line_is_named_with_its_file(
    prepare: Prepare, name: str, data: bytes, line: int, words: str, reason: str
) -> None:
    with pytest.raises(CorpusError, match=re.escape(f"{name}, line {line}: ")) as caught:
        prepare({name: data})
    assert words in str(caught.value)
    assert "--skip-bad-lines" in str(caught.value)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(("name", "data", "line", "words", "reason"), LINES, ids=[case[0] for case in LINES])
def test_a_skipped_line_is_counted_by_its_reason(
    prepare: Prepare, name: str, data: bytes, line: int, words: str, reason: str
) -> None:
    store = prepare({name: data}, skip_bad_lines=True)
    assert store.skipped[reason] >= 1
    assert store.num_documents >= 1


@pytest.mark.parametrize(("name", "data", "words"), FILES, ids=[case[0] for case in FILES])
def test_a_bad_file_is_named(prepare: Prepare, name: str, data: bytes, words: str) -> None:
    with pytest.raises(CorpusError, match=re.escape(name)) as caught:
        prepare({name: data})
    assert words in str(caught.value)


def test_the_whole_documents_before_the_damage_are_kept_when_asked(prepare: Prepare) -> None:
    cut = gzip.compress(b"".join(b"T%d\nThe cat sat. It ran.\n\n" % number for number in range(60_000)), mtime=0)
    store = prepare({"cut.txt.gz": cut[: len(cut) * 9 // 10]}, skip_bad_lines=True)
    assert store.skipped == {"damaged_file": 1}
    assert 30_000 < store.num_documents < 60_000


def test_nothing_readable_is_an_error_even_when_skipping(prepare: Prepare) -> None:
    with pytest.raises(CorpusError, match=r"no document was found in it; skipped: 1 damaged_file"):
        prepare({"not.txt.gz": PLAIN}, skip_bad_lines=True)


def test_windows_line_ends_and_a_byte_order_mark_change_nothing() -> None:
    plain = list(_read(PLAIN))
    assert list(_read(b"\xef\xbb\xbf" + PLAIN.replace(b"\n", b"\r\n"))) == plain
    assert plain == [["Cats", "The cat sat. The cat ran far."], ["Dogs", "A dog sat on the mat. It ran."]]


def test_json_lines_hold_a_document_each_with_its_paragraphs() -> None:
    line = json.dumps({"id": 1, "text": "Cats\nThe cat sat.\n\nIt ran."}).encode()
    assert list(_read(line + b"\n\n" + line, layout="jsonl")) == [["Cats", "The cat sat.", "It ran."]] * 2


def _read(data: bytes, layout: str = "text") -> list[list[str]]:
    block = Block("a", layout, 1, data, len(data))  # type: ignore[arg-type]
    return [document.paragraphs for document in documents(block, Complaints("a", skip_bad=False))]


@pytest.mark.parametrize("layout", ["text", "jsonl"])
@pytest.mark.parametrize("skip_bad", [False, True])
@given(data=st.binary(max_size=400))
def test_any_bytes_are_read_or_refused_by_line(layout: str, skip_bad: bool, data: bytes) -> None:
    complaints = Complaints("a", skip_bad=skip_bad)
    message = ""
    found = []
    try:
        found = list(documents(Block("a", layout, 1, data, 0), complaints))  # type: ignore[arg-type]
    except CorpusError as error:
        message = str(error)
    assert not message or re.match(r"a, line \d+: ", message)
    assert skip_bad or not complaints.skipped
    assert all(document.paragraphs for document in found)


NAMES = ["f.txt", "f.jsonl", "f.txt.gz", "f.jsonl.gz", "f.txt.zst", "f.zst", "f.gz"]
FRAGMENTS = st.sampled_from(
    [
        b"\n",
        b"\n\n",
        b"The cat sat. ",
        b"It ran. ",
        b"\0",
        b"\xff",
        b"\xed\xa0\x80",
        b'{"text": "',
        b'"}',
        b"\\ud800",
        GOOD,
    ]
)


@given(
    name=st.sampled_from(NAMES),
    data=st.binary(max_size=200) | st.lists(FRAGMENTS, max_size=12).map(b"".join),
    pack=st.booleans(),
    skip_bad=st.booleans(),
)
def test_any_file_gives_a_store_or_an_error_of_ours(
    model_folder: str, name: str, data: bytes, pack: bool, skip_bad: bool
) -> None:
    if pack and name.endswith(".gz"):
        data = gzip.compress(data)
    if pack and name.endswith(".zst"):
        data = zstandard.ZstdCompressor().compress(data)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(data)
        message = name
        store = None
        try:
            store = prepare_corpus([str(path)], Path(folder) / "out", model=model_folder, skip_bad_lines=skip_bad)
        except SparseBertError as error:
            message = str(error)
        assert name in message
        if store is not None:
            store.verify()
            assert store.num_documents > 0
            assert skip_bad or set(store.skipped) <= {"sentence_without_tokens"}


def test_what_is_kept_and_what_is_skipped_add_up(prepare: Prepare) -> None:
    data = PLAIN + b"\nOne\n\nTwo\n\n" + PLAIN + b"\n\xff\nNew\nThe cat sat. It ran.\n"
    store: TokenStore = prepare({"a.txt": data}, skip_bad_lines=True)
    assert Counter(store.skipped) == {"one_sentence": 2, "invalid_utf8": 1}
    assert store.num_documents == 5
    assert store.manifest["counts"]["repeated_documents"] == 2
