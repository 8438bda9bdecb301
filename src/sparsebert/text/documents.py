"""Blocks -> documents, strictly: every line is right, or is an error that says where, or is counted as skipped."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from sparsebert.errors import CorpusError
from sparsebert.text.blocks import Block

MAX_LINE_BYTES = 500_000  # a long paragraph has 30,000; more is a file without line ends
_BOM = b"\xef\xbb\xbf"

# What is wrong, and what to do about it. The keys are what the manifest counts.
REASONS = {
    "invalid_utf8": ("is not valid UTF-8", "convert the file with iconv"),
    "nul_byte": ("holds a NUL byte, so it is not text", "check the file, or remove the byte"),
    "lone_surrogate": (
        "holds half of a surrogate pair, which is no character",
        "convert the file again from its origin",
    ),
    "line_too_long": (f"is longer than {MAX_LINE_BYTES:,} bytes", "put each paragraph on a line of its own"),
    "bad_json": ("is not valid JSON", 'expected an object such as {"text": "..."}'),
    "not_an_object": ("is JSON, but not an object", 'expected an object such as {"text": "..."}'),
    "no_text": ("has no field called text", 'expected an object such as {"text": "..."}'),
    "repeated_text": ("has two fields called text", "keep one of them"),
    "text_not_string": ("has a field called text that is not a string", 'expected an object such as {"text": "..."}'),
    "empty_text": ("has a field called text without any word", "remove the line"),
    "one_sentence": (
        "starts a document of one sentence, but next-sentence prediction needs two",
        "join it with a neighbour",
    ),
}


class _BadLineError(Exception):
    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(reason)
        self.reason, self.detail = reason, detail


@dataclass(frozen=True)
class Document:
    first_line: int  # in its source, from 1
    paragraphs: list[str]  # not empty, no newlines inside


class Complaints:
    """Raises at the first bad line, or counts bad lines by reason."""

    def __init__(self, source: str, *, skip_bad: bool) -> None:
        self.source, self.skip_bad = source, skip_bad
        self.skipped: Counter[str] = Counter()

    def add(self, line: int, reason: str, detail: str = "") -> None:
        if not self.skip_bad:
            what, remedy = REASONS[reason]
            shown = f" ({detail})" if detail else ""
            raise CorpusError(f"{self.source}, line {line}: {what}{shown}; {remedy}, or pass --skip-bad-lines")
        self.skipped[reason] += 1


def documents(block: Block, complaints: Complaints) -> Iterator[Document]:
    """The documents of a block, in order."""
    data = block.data
    if block.first_line == 1:
        data = data.removeprefix(_BOM)  # what Windows editors put before UTF-8
    lines = enumerate(data.split(b"\n"), block.first_line)
    read: Callable[..., Iterator[Document]] = {"text": _plain, "jsonl": _json_lines}[block.layout]
    return read(lines, complaints)


def _plain(lines: Iterator[tuple[int, bytes]], complaints: Complaints) -> Iterator[Document]:
    paragraphs: list[str] = []
    first_line = 0
    for number, raw in lines:
        try:
            line = _decode(raw).strip()
        except _BadLineError as bad:
            complaints.add(number, bad.reason, bad.detail)
            continue
        if line:
            first_line = first_line if paragraphs else number
            paragraphs.append(line)
        elif paragraphs:
            yield Document(first_line, paragraphs)
            paragraphs = []
    if paragraphs:
        yield Document(first_line, paragraphs)


def _json_lines(lines: Iterator[tuple[int, bytes]], complaints: Complaints) -> Iterator[Document]:
    for number, raw in lines:
        if not raw.strip():
            continue
        try:
            yield Document(number, _json_paragraphs(raw))
        except _BadLineError as bad:
            complaints.add(number, bad.reason, bad.detail)


def _decode(raw: bytes) -> str:
    if len(raw) > MAX_LINE_BYTES:
        raise _BadLineError("line_too_long", f"{len(raw):,}")
    if b"\0" in raw:
        hint = "it looks like UTF-16" if raw.count(b"\0") * 3 > len(raw) else f"at byte {raw.index(0) + 1} of the line"
        raise _BadLineError("nul_byte", hint)
    return _utf8(raw)


def _utf8(raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        where = f"byte {error.start + 1} of the line is 0x{raw[error.start]:02x}"
    try:
        raw.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        raise _BadLineError("invalid_utf8", where) from None
    raise _BadLineError("lone_surrogate", where)


def _json_paragraphs(raw: bytes) -> list[str]:
    """The paragraphs of one JSON line; the whole line may be as long as a document."""
    text = _json_text(_utf8(raw))
    if "\0" in text:
        raise _BadLineError("nul_byte", f"at character {text.index(chr(0)) + 1} of the text")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise _BadLineError("lone_surrogate", f"at character {error.start + 1} of the text") from None
    paragraphs = [line.strip() for line in text.split("\n")]
    longest = max(len(paragraph.encode()) for paragraph in paragraphs)
    if longest > MAX_LINE_BYTES:
        raise _BadLineError("line_too_long", f"a paragraph of {longest:,}")
    paragraphs = [paragraph for paragraph in paragraphs if paragraph]
    if not paragraphs:
        raise _BadLineError("empty_text")
    return paragraphs


def _json_text(line: str) -> str:
    try:
        value: Any = json.loads(line, object_pairs_hook=_JsonObject)
    except (ValueError, RecursionError) as error:
        # json's own errors name the character; what it says of depth and of long numbers is advice to programmers.
        detail = str(error) if isinstance(error, json.JSONDecodeError) else "nested too deeply, or an endless number"
        raise _BadLineError("bad_json", detail) from None
    if not isinstance(value, _JsonObject):
        raise _BadLineError("not_an_object", f"found {_json_kind(value)}")
    texts = [field for name, field in value if name == "text"]
    if len(texts) != 1:
        raise _BadLineError("repeated_text" if texts else "no_text")
    if not isinstance(texts[0], str):
        raise _BadLineError("text_not_string", f"found {_json_kind(texts[0])}")
    return texts[0]


class _JsonObject(list[tuple[str, Any]]):
    """The fields in order, so that a repeated one is seen; a dict would keep the last silently."""


def _json_kind(value: Any) -> str:
    if value is None:
        return "null"
    names = {bool: "true or false", int: "a number", float: "a number", str: "a string", _JsonObject: "an object"}
    return names.get(type(value), "a list")
