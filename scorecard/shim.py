"""The fault shim (shim.c) from Python: built once, loaded by starting this program again with LD_PRELOAD."""

import ctypes
import hashlib
import os
import subprocess
import sys
from pathlib import Path

_SOURCE = Path(__file__).with_name("shim.c")
_LOADED = "SPARSEBERT_FAULTS_SHIM"
NO_NETWORK = "SPARSEBERT_FAULTS_NO_NETWORK"  # a file's name: connections beyond loopback fail and are noted there


def build(folder: Path) -> Path:
    """The shared object, compiled where it is not there yet for this source."""
    digest = hashlib.sha256(_SOURCE.read_bytes()).hexdigest()[:12]
    target = folder.resolve() / f"shim-{digest}.so"
    if not target.exists():
        folder.mkdir(parents=True, exist_ok=True)
        part = target.with_suffix(f".{os.getpid()}.part")
        command = ["gcc", "-O1", "-Wall", "-Werror", "-shared", "-fPIC", "-o", str(part), str(_SOURCE), "-ldl"]
        subprocess.run(command, check=True)
        part.rename(target)
    return target


def loaded(folder: Path) -> None:
    """Start this process anew with the shim in it, unless it is there already."""
    if os.environ.get(_LOADED) != "1":
        names = {"LD_PRELOAD": str(build(folder)), _LOADED: "1"}
        # The package is named again, since sys.argv holds the file that was found for it.
        arguments = [sys.executable, "-m", "scorecard", *sys.argv[1:]]
        os.execve(sys.executable, arguments, {**os.environ, **names})


def watch(folder: Path, *, kill_at: int = -1, power_cut: bool = False, quota: int = -1) -> None:
    """Count, in this process and its children to come, whatever gets to the disk below a folder.

    kill_at: SIGKILL at that call, a write being torn in half. power_cut: bytes that no fsync covered go too.
    quota: bytes after which the disk is full.
    """
    library = ctypes.CDLL(None)
    numbers = (ctypes.c_long(kill_at), ctypes.c_long(int(power_cut)), ctypes.c_long(quota))
    library.faults_watch(str(folder.resolve()).encode(), *numbers)


def calls() -> int:
    return _number("faults_calls")


def written() -> int:
    return _number("faults_written")


def _number(name: str) -> int:
    function = getattr(ctypes.CDLL(None), name)
    function.restype = ctypes.c_long
    return int(function())


def forbid_network(log: Path) -> None:
    """From here on connections beyond loopback fail, and are noted in the file."""
    ctypes.CDLL(None).faults_forbid_network(str(log).encode())
