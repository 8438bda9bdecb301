"""What the fault shim stops when the network is cut off: whatever would leave this machine, and nothing else."""

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from scorecard import shim

BEYOND = "192.0.2.1"  # kept for documentation: belongs to nobody

TRIES = {
    "connect": f'socket.create_connection(("{BEYOND}", 80), 1)',
    "look up": 'socket.getaddrinfo("somewhere.invalid", 80)',
    "send to": f'socket.socket(type=socket.SOCK_DGRAM).sendto(b"x", ("{BEYOND}", 53))',
    "send": f's = socket.socket(type=socket.SOCK_DGRAM); s.connect(("{BEYOND}", 53)); s.send(b"x")',
    "write": f's = socket.socket(type=socket.SOCK_DGRAM); s.connect(("{BEYOND}", 53)); os.write(s.fileno(), b"x")',
}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("gcc") is None:
        pytest.skip("the fault shim is compiled with gcc, which is not there")
    return shim.build(tmp_path_factory.mktemp("shim"))


def run(code: str, library: Path, log: Path) -> tuple[int, list[str]]:
    names = {**os.environ, "LD_PRELOAD": str(library), shim.NO_NETWORK: str(log)}
    done = subprocess.run(
        [sys.executable, "-c", f"import os, socket; {code}"], env=names, capture_output=True, check=False
    )
    return done.returncode, log.read_text().splitlines() if log.exists() else []


@pytest.mark.parametrize("way", TRIES)
def test_what_would_leave_the_machine_fails_and_is_noted(way: str, library: Path, tmp_path: Path) -> None:
    with socket.socket(type=socket.SOCK_DGRAM) as one:
        if way in ("send", "write") and one.connect_ex((BEYOND, 53)):
            pytest.skip("this machine has no route to anywhere, so there is nothing to send through")
    code, noted = run(TRIES[way], library, tmp_path / "log")
    assert code == 1
    assert len(noted) == 1
    assert ("somewhere.invalid" if way == "look up" else BEYOND) in noted[0]


def test_loopback_works_and_is_not_noted(library: Path, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code, noted = run(f'socket.create_connection(("localhost", {port}), 5).send(b"x")', library, tmp_path / "log")
    assert (code, noted) == (0, [])


def test_asking_for_a_route_is_not_noted(library: Path, tmp_path: Path) -> None:
    ask = f'socket.socket(type=socket.SOCK_DGRAM).connect_ex(("{BEYOND}", 53))'  # fails where there is no network
    assert run(ask, library, tmp_path / "log") == (0, [])
