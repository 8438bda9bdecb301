"""The next batches, made in the background while the current one is in use."""

import queue
import threading
from typing import Generic, Protocol, Self, TypeVar

Batch_co = TypeVar("Batch_co", covariant=True)
Batch = TypeVar("Batch")


class Batches(Protocol[Batch_co]):
    """Anything that makes a batch from a step alone."""

    def batch(self, step: int) -> Batch_co: ...


class Prefetcher(Generic[Batch]):
    """Yields batch(first_step), batch(first_step + 1), ... exactly as calling it would, up to `depth` ahead.

    An error while making a batch is raised when that batch is due, not earlier. Close it, or use it in a `with`.
    """

    def __init__(
        self, batches: Batches[Batch], first_step: int, *, last_step: int | None = None, depth: int = 4
    ) -> None:
        self._batches, self._first_step, self._last_step = batches, first_step, last_step  # last_step is not made
        self._ready: queue.Queue[Batch | _Failure | _End] = queue.Queue(maxsize=depth)
        self._closing = threading.Event()
        self._finished: _Failure | _End | None = None
        self._thread = threading.Thread(target=self._run, name="prefetch", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        step = self._first_step
        while not self._closing.is_set():
            if self._last_step is not None and step >= self._last_step:
                self._put(_End())
                return
            try:
                made = self._batches.batch(step)
            except BaseException as error:  # handed over whole: the consumer decides what it means
                self._put(_Failure(error))
                return
            self._put(made)
            step += 1

    def _put(self, item: "Batch | _Failure | _End") -> None:
        while not self._closing.is_set():
            try:
                self._ready.put(item, timeout=0.1)  # the timeout only bounds how late a close is noticed
            except queue.Full:
                continue
            return

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Batch:
        if self._closing.is_set():
            raise StopIteration
        item = self._finished or self._ready.get()
        if isinstance(item, _Failure):
            self._finished = item
            raise item.error
        if isinstance(item, _End):
            self._finished = item
            raise StopIteration
        return item

    def close(self) -> None:
        """Stop making batches and wait for the thread to end; may be called twice."""
        self._closing.set()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Failure:
    def __init__(self, error: BaseException) -> None:
        self.error = error


class _End:
    """No more batches."""
