"""Processes to kill: forked from the warm test process, since importing the stack anew takes seconds."""

import os
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from sparsebert.errors import SparseBertError

_PATIENCE = 120.0  # seconds until a test gives up; no test passes or fails by being quick


def forked(work: Callable[[], object], log: Path) -> int:
    """Start `work` in a child; its id. The exit code is that of the command line."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
        work()
        code = 0
    except SparseBertError as error:
        os.write(2, f"error: {error}\n".encode())
        code = error.exit_code
    except BaseException:
        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(code)


def ended(child: int) -> int:
    """Wait for a child; its exit code, or minus the signal that ended it."""
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    raise AssertionError(f"process {child} did not end within {_PATIENCE:g} s")


def forked_ranks(work: Callable[[], object], count: int, log: Path) -> list[int]:
    """Children that find each other as torchrun's would; the log of each has its rank in its name."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])

    def as_rank(rank: int) -> Callable[[], object]:
        def run() -> object:
            names = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": count, "MASTER_PORT": port}
            os.environ.update({name: str(value) for name, value in names.items()} | {"MASTER_ADDR": "127.0.0.1"})
            return work()

        return run

    return [forked(as_rank(rank), log.with_suffix(f".{rank}")) for rank in range(count)]


def die() -> None:
    """As a power cut would have it: no handler, no cleaning up."""
    sys.stderr.flush()
    os.kill(os.getpid(), signal.SIGKILL)
