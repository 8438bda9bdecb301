"""Lines of a text file as bytes give them: split at line feeds only, decoded one by one.

A text may hold any other character that some tools take for the end of a line, so nothing but LF ends one.
"""

from collections.abc import Iterator
from pathlib import Path

from sparsebert.errors import TaskError
from sparsebert.files import read_bytes
from sparsebert.tasks.rows import Place

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # the official MRPC files begin with it


def decoded_lines(path: Path) -> Iterator[tuple[int, str | TaskError]]:
    """Line numbers from 1 and their text without the line's end; a line that is not text gives an error instead."""
    data = read_bytes(path).removeprefix(_BYTE_ORDER_MARK)
    if not data:
        raise TaskError(f"{path} is empty; expected the official file")
    lines = data.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    # A file that was written with CR LF says so in its first line; elsewhere a CR is text.
    ending = b"\r" if lines[0].endswith(b"\r") else b""
    for number, line in enumerate(lines, start=1):
        yield number, decode(line.removesuffix(ending), Place(path, number))


def decode(line: bytes, place: Place) -> str | TaskError:
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        bad = line[error.start : error.end]
        return place.error(f"the bytes {bad!r} at byte {error.start + 1} of the line", "UTF-8 text")
    if "\0" in text:
        return place.error(f"a NUL character at character {text.index(chr(0)) + 1} of the line", "text")
    return text


def is_broken(text: str) -> bool:
    """Whether it holds half a character, which JSON can spell but no file can hold."""
    return any("\ud800" <= character <= "\udfff" for character in text)
