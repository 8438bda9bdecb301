"""SIGTERM and SIGINT, remembered until the step at hand is done, or what comes after the last one."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType

from sparsebert.errors import RunInterruptedError

WATCHED = (signal.SIGTERM, signal.SIGINT)


@dataclass
class Received:
    """The signal that asked the run to stop; 0: none did."""

    number: int = 0

    def remember(self, number: int, _: FrameType | None) -> None:
        """The whole handler: anything more could run in the middle of anything."""
        self.number = number


@contextlib.contextmanager
def remembered() -> Iterator[Received]:
    """While entered, the watched signals are remembered instead of acted on. Only a main thread may do this.

    One that comes after the last step ends no run; it is raised again at the end, for whoever made the run: a study
    that was asked to stop must not go on with the next.
    """
    received = Received()
    if threading.current_thread() is not threading.main_thread():
        yield received
        return
    before = {number: signal.signal(number, received.remember) for number in WATCHED}
    try:
        yield received
    except RunInterruptedError:
        received.number = 0  # acted on
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if received.number:
            signal.raise_signal(received.number)
