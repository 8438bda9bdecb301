"""One lock for whatever two processes must not write at once; it ends with the process that holds it."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from sparsebert.errors import SparseBertError
from sparsebert.files import file_errors


@contextlib.contextmanager
def locked(path: Path, taken: SparseBertError | None = None) -> Iterator[int]:
    """Hold a folder, or a file that is made where there is none; gives its descriptor.

    taken: what to raise where another process holds it; None: wait until it lets go.
    """
    with file_errors("write", path):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (fcntl.LOCK_NB if taken else 0))
        except BlockingIOError as error:
            assert taken is not None
            raise taken from error
        yield descriptor
    finally:
        os.close(descriptor)
