"""Lines of a text file as bytes give them: split at line feeds only, decoded one by one; and where one stands.

A text may hold any other character that some tools take for the end of a line, so nothing but LF ends one.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from sparsebert.errors import TaskError
from sparsebert.files import read_bytes

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # the official MRPC files begin with it
_SHOWN = 80  # characters of a value that an error quotes


@dataclass(frozen=True)
class FilePlace:
    """Where in a file something was found, for errors that name it."""

    path: Path
    line: int
    column: str | None = None

    def __str__(self) -> str:
        column = "" if self.column is None else f", column {self.column!r}"
        return f"{self.path}, line {self.line}{column}"

    def in_column(self, column: str) -> "FilePlace":
        return replace(self, column=column)

    def error(self, found: str, expected: str) -> TaskError:
        return TaskError(f"{self}: found {found}; expected {expected}")

    def value_error(self, value: str, expected: str) -> TaskError:
        shown = value if len(value) <= _SHOWN else value[: _SHOWN - 3] + "..."
        return self.error(repr(shown), expected)


def raw_lines(path: Path) -> Iterator[tuple[FilePlace, bytes]]:
    """The lines of a file without their ends."""
    data = read_bytes(path).removeprefix(_BYTE_ORDER_MARK)
    if not data:
        raise TaskError(f"{path} is empty; expected the official file")
    lines = data.removesuffix(b"\n").split(b"\n")
    # A file that was written with CR LF says so in its first line; elsewhere a CR is text.
    ending = b"\r" if lines[0].endswith(b"\r") else b""
    for number, line in enumerate(lines, start=1):
        yield FilePlace(path, number), line.removesuffix(ending)


def decode(line: bytes, place: FilePlace) -> str:
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        bad = line[error.start : error.end]
        raise place.error(f"the bytes {bad!r} at byte {error.start + 1} of the line", "UTF-8 text") from error
    if "\0" in text:
        raise place.error(f"a NUL character at character {text.index(chr(0)) + 1} of the line", "text")
    return text


def is_broken(text: str) -> bool:
    """Whether it holds half a character, which JSON can spell but no file can hold."""
    return any("\ud800" <= character <= "\udfff" for character in text)
