"""A thread that ends this process when another rank is gone, even while the main thread waits for it in a collective.

Each rank counts up a number in the store that torchrun keeps, and watches the number of the next rank. The first to
see a neighbour fall silent says so in the store, so all ranks end together and none waits for a collective's timeout.
"""

import logging
import os
import threading
import time
from datetime import timedelta
from types import TracebackType
from typing import Self

from torch.distributed import TCPStore  # type: ignore[attr-defined]

logger = logging.getLogger(__name__)

EXIT_CODE = 3
_PULSE = 0.5  # seconds between two signs of life
_LOST = "sparsebert/lost"


class Watchdog:
    """Watches while it is entered; leaving it with an error tells the other ranks at once."""

    def __init__(self, rank: int, ranks: int, timeout: float) -> None:
        self.rank, self.ranks, self.timeout = rank, ranks, timeout
        address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        # A connection of its own: the process group's may be held by a waiting main thread.
        self.store = TCPStore(
            address, port, is_master=False, wait_for_workers=False, timeout=timedelta(seconds=timeout)
        )
        self.closing = threading.Event()
        self.thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def __enter__(self) -> Self:
        self.store.set(self._key(self.rank), "0")
        self.thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if error is not None and not self.closing.is_set():
            self._tell(f"rank {self.rank} stopped with {kind.__name__ if kind else 'an error'}")
        self.close()

    def close(self) -> None:
        """Stop watching: from here on the others may leave as well."""
        self.closing.set()
        if self.thread.is_alive():
            self.thread.join()

    def _watch(self) -> None:
        neighbour, heard, heard_at, count = (self.rank + 1) % self.ranks, b"", time.monotonic(), 0
        while not self.closing.wait(_PULSE):
            try:
                count += 1
                self.store.set(self._key(self.rank), str(count))
                if self.store.check([_LOST]):
                    self._end(self.store.get(_LOST).decode())
                    return
                sign = self.store.get(self._key(neighbour))
            except RuntimeError:  # DistError and its family: the process that kept the store is gone
                self._end("the store of the ranks cannot be reached")
                return
            if sign != heard:
                heard, heard_at = sign, time.monotonic()
            elif time.monotonic() - heard_at > self.timeout:
                reason = f"rank {neighbour} gave no sign of life for {self.timeout:g} s"
                self._tell(reason)
                self._end(reason)
                return

    def _key(self, rank: int) -> str:
        return f"sparsebert/pulse/{rank}"

    def _tell(self, reason: str) -> None:
        try:
            self.store.set(_LOST, reason)
        except RuntimeError:
            logger.debug("the store is gone, and so is whoever kept it")

    def _end(self, reason: str) -> None:
        # A run that is just ending closes its store too: give the main thread a moment to say that it is done.
        if self.closing.wait(1.0):
            return
        # Straight to the file descriptor: the main thread may hold the locks of everything more convenient.
        os.write(2, f"error: rank {self.rank} ends: {reason}; run the same command again to resume\n".encode())
        os._exit(EXIT_CODE)
