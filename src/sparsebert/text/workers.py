"""The processes that tokenise: each takes a block, writes one shard, and reports what is in it."""

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

import numpy as np
from jaxtyping import UInt64
from numpy import ndarray
from tokenizers import Tokenizer

from sparsebert.errors import CorpusError, SparseBertError
from sparsebert.files import open_sealed_tensors, read_bytes, seal_tensors, sha256, write_atomic
from sparsebert.text.blocks import Block
from sparsebert.text.documents import Complaints
from sparsebert.text.shards import WITHOUT_TOKENS, Shard, encode_block, shard_from_tensors
from sparsebert.text.store import TOKENIZER, ShardEntry, shard_path
from sparsebert.text.vocabulary import read_tokenizer

_WAITING = 2  # blocks handed out per worker: one in work, one ready; more would only take memory


@dataclass(frozen=True)
class BlockToEncode:
    """One block, and all that decides its shard besides the tokenizer."""

    number: int
    block: Block
    key: str
    seed: int
    held_out: float
    skip_bad: bool
    position: int  # stored bytes of all inputs read so far


@dataclass(frozen=True)
class ShardReport:
    source: str
    entry: ShardEntry
    hashes: UInt64[ndarray, " num_documents"]
    skipped: dict[str, int]
    position: int
    reused: bool


def make_shards(blocks: Iterable[BlockToEncode], out: Path, workers: int) -> Iterator[ShardReport]:
    """Reports in the order of the blocks, so that the first error in the text is the one that is raised."""
    blocks = iter(blocks)
    first = list(islice(blocks, 2))
    if len(first) < 2:  # one block is done here: starting a process takes longer
        yield from (make_shard(one, out, _load(out)) for one in first)
        return
    yield from _in_processes(chain(first, blocks), out, workers)


def _in_processes(blocks: Iterator[BlockToEncode], out: Path, workers: int) -> Iterator[ShardReport]:
    context = multiprocessing.get_context("spawn")  # a fork would copy the locks of the parent's threads
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_start, initargs=(out,))
    waiting: deque[Future[ShardReport]] = deque()
    try:
        for one in blocks:
            waiting.append(pool.submit(_work, one))
            if len(waiting) >= _WAITING * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool as error:
        raise CorpusError(
            "a worker process ended unexpectedly, perhaps for want of memory; run the same command again to go on, "
            "with fewer --workers"
        ) from error
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


class _WorkerState:
    """What one worker process keeps between blocks."""

    out: Path
    tokenizer: Tokenizer


def _start(out: Path) -> None:
    # One process a core: threads inside the library would only compete with the other workers.
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    _WorkerState.out, _WorkerState.tokenizer = out, _load(out)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process; the parent's answer is enough
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A killed parent tells nobody; without this its workers would wait for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _work(one: BlockToEncode) -> ShardReport:
    return make_shard(one, _WorkerState.out, _WorkerState.tokenizer)


def _load(out: Path) -> Tokenizer:
    return read_tokenizer(read_bytes(out / TOKENIZER), str(out / TOKENIZER))


def make_shard(one: BlockToEncode, out: Path, tokenizer: Tokenizer) -> ShardReport:
    """Write the shard of a block, unless the very same one is there already."""
    path = shard_path(out, one.number)
    finished = _finished(path, one, tokenizer)
    if finished is not None:
        return finished
    complaints = Complaints(one.block.source, skip_bad=one.skip_bad)
    shard = encode_block(one.block, tokenizer, seed=one.seed, complaints=complaints)
    skipped = {reason: count for reason, count in sorted(complaints.skipped.items()) if count}
    data = seal_tensors(shard.tensors(), {"key": one.key, "skipped": skipped})
    write_atomic(path, data)
    return _report(one, shard, skipped, data, reused=False)


def _finished(path: Path, one: BlockToEncode, tokenizer: Tokenizer) -> ShardReport | None:
    """The report of a shard that an earlier run wrote, if it is whole and of the same block and plan."""
    if not path.exists():
        return None
    try:
        data = read_bytes(path)
        tensors, about = open_sealed_tensors(data, path)
        skipped: dict[str, int] = about["skipped"]
        if about["key"] != one.key or (set(skipped) - {WITHOUT_TOKENS} and not one.skip_bad):
            return None  # of other text; or of text with bad lines, which this run has to complain about
        shard = shard_from_tensors(tensors, tokenizer.get_vocab_size(with_added_tokens=True), str(path))
    except (SparseBertError, KeyError):
        return None  # damaged on disk: it is made again from the text, which is at hand
    return _report(one, shard, skipped, data, reused=True)


def _report(one: BlockToEncode, shard: Shard, skipped: dict[str, int], data: bytes, *, reused: bool) -> ShardReport:
    entry = ShardEntry(sha256=sha256(data), **shard.counts(one.held_out))
    hashes = np.array(shard.hashes)
    return ShardReport(one.block.source, entry, hashes, skipped, one.position, reused)
