"""Bytes -> blocks of whole documents, each small enough for one worker, cut the same way every time."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from sparsebert.errors import CorpusError
from sparsebert.text.sources import DamagedSourceError, Layout, Source, pieces

BLOCK_BYTES = 4 * 2**20  # text in one block, and so in one shard of the store; a few seconds of work
MAX_DOCUMENT_BYTES = 16 * 2**20  # bounds the memory of a run; the longest novels have about 4 MiB

_ENDS = {"text": re.compile(rb"\n[ \t\r\f\v]*\n"), "jsonl": re.compile(rb"\n")}


@dataclass(frozen=True)
class Block:
    """Some whole documents of one source."""

    source: str
    layout: Layout
    first_line: int  # number of the block's first line in the uncompressed source, from 1
    data: bytes
    position: int  # stored bytes of the source that had been read when the block was cut


def cut(source: Source, *, skip_bad: bool, skipped: Counter[str]) -> Iterator[Block]:
    """Cut a source after the first document end beyond BLOCK_BYTES; a function of the bytes alone."""
    cutter = _Cutter(source, skip_bad, skipped)
    try:
        for piece in pieces(source):
            cutter.position = piece.position
            yield from cutter.feed(piece.data)
    except DamagedSourceError:
        if not skip_bad:
            raise
        skipped["damaged_file"] += 1
        cutter.forget_unfinished()
    yield from cutter.finish()


class _Cutter:
    def __init__(self, source: Source, skip_bad: bool, skipped: Counter[str]) -> None:
        self.source, self.skip_bad, self.skipped = source, skip_bad, skipped
        self.end = _ENDS[source.layout]
        self.buffer = bytearray()
        self.line = 1
        self.position = 0
        self.searched = 0  # no document end starts before this
        self.dropping = False  # inside a document that is too long

    def feed(self, data: bytes) -> Iterator[Block]:
        self.buffer += data
        while True:
            start = self.searched if self.dropping else max(BLOCK_BYTES, self.searched)
            found = self.end.search(self.buffer, start)
            if found is None:
                break
            block = self._take(found.end())
            if not self.dropping:
                yield block
            self.dropping = False
        # An end that is not complete yet can only start at the last newline seen.
        self.searched = max(self.buffer.rfind(b"\n"), 0)
        if self.dropping:
            self._take(self.searched)
        elif len(self.buffer) > BLOCK_BYTES + MAX_DOCUMENT_BYTES:
            yield from self._too_long()

    def _too_long(self) -> Iterator[Block]:
        start = self._last_end()
        if start:
            yield self._take(start)
        if not self.skip_bad:
            raise CorpusError(
                f"{self.source.name}, line {self.line}: the document that starts here is longer than "
                f"{MAX_DOCUMENT_BYTES:,} bytes; put a blank line between documents, or pass --skip-bad-lines"
            )
        self.skipped["document_too_long"] += 1
        self.dropping = True
        self.searched = max(self.buffer.rfind(b"\n"), 0)
        self._take(self.searched)

    def _last_end(self) -> int:
        last = 0
        for found in self.end.finditer(self.buffer):
            last = found.end()
        return last

    def _take(self, size: int) -> Block:
        data = bytes(self.buffer[:size])
        block = Block(self.source.name, self.source.layout, self.line, data, self.position)
        del self.buffer[:size]
        self.line += data.count(b"\n")
        self.searched = 0
        return block

    def forget_unfinished(self) -> None:
        """Keep whole documents only: the bytes after the last document end may be half of one."""
        del self.buffer[self._last_end() :]

    def finish(self) -> Iterator[Block]:
        if self.buffer and not self.dropping:
            yield self._take(len(self.buffer))
