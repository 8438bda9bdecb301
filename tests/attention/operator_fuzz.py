"""The operator's fuzzing under the address and undefined-behaviour sanitizers; `make sanitize` runs it.

Memory that was not written holds NaN here, so that reading it shows in the answer, which is held against the oracle.
"""

import argparse
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import HealthCheck, given, seed, settings

ROOT = Path(__file__).parents[2]
CHUNK = 500  # calls in one process


def build(folder: Path) -> Path:
    """The kernel with the sanitizers in it."""
    subprocess.run(["bash", str(ROOT / "csrc" / "build_sanitized.sh"), str(folder)], check=True)
    return folder / "_sparse_kernel.so"


def environment() -> dict[str, str]:
    """What a process needs that loads such a kernel into a Python without sanitizers."""
    compiler = os.environ.get("CXX", "g++")
    names = ("libasan.so", "libubsan.so", "libstdc++.so")
    found = [
        subprocess.run([compiler, f"-print-file-name={name}"], capture_output=True, text=True).stdout for name in names
    ]
    options = "detect_leaks=0:max_malloc_fill_size=1073741824:malloc_fill_byte=255:abort_on_error=1"
    return os.environ | {"LD_PRELOAD": " ".join(map(str.strip, found)), "ASAN_OPTIONS": options, "OMP_NUM_THREADS": "2"}


def fuzz(kernel: Path, calls: int, first: int) -> Counter[str]:
    """So many calls in a process of their own, the draws numbered from `first`; what became of them."""
    command = [sys.executable, "-m", "tests.attention.operator_fuzz", "--kernel", str(kernel), "--calls", str(calls)]
    done = subprocess.run([*command, "--draw", str(first)], env=environment(), cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"draw {first}, exit {done.returncode}: {(done.stderr or done.stdout)[-3000:]}")
    pairs = (line.split() for line in done.stdout.splitlines())
    return Counter({word: int(count) for word, count in pairs})


def _chunk(kernel: Path, calls: int, draw: int) -> Counter[str]:
    import torch

    from sparsebert.attention import sparse_library
    from tests.attention.operator_calls import make, make_spoiled, operator_calls, spoiled_structures
    from tests.layers import int8_calls

    sparse_library._LIBRARY = kernel
    torch.utils.deterministic.fill_uninitialized_memory = True
    torch.use_deterministic_algorithms(True)  # torch's own fresh memory is NaN then
    became: Counter[str] = Counter()
    patient = settings(max_examples=calls, database=None, deadline=None, suppress_health_check=list(HealthCheck))

    def counted(strategy: Any, use: Callable[[Any], str], share: int) -> None:
        @seed(draw)
        @settings(patient, max_examples=share)
        @given(strategy)
        def run(drawn: Any) -> None:
            became[use(drawn)] += 1

        run()

    counted(operator_calls(), make, calls * 7 // 10)
    counted(spoiled_structures(), lambda drawn: make_spoiled(*drawn), calls * 2 // 10)
    counted(int8_calls.calls(), int8_calls.make, calls - calls * 7 // 10 - calls * 2 // 10)
    return became


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=20_000)
    parser.add_argument("--kernel", type=Path, help="a kernel built with the sanitizers; built when it is not given")
    parser.add_argument("--draw", type=int, help="run in this process, with draws of this number")
    given_arguments = parser.parse_args()
    if given_arguments.draw is not None:
        for word, count in _chunk(given_arguments.kernel, given_arguments.calls, given_arguments.draw).items():
            sys.stdout.write(f"{word} {count}\n")
        return 0
    with TemporaryDirectory() as folder:
        kernel = given_arguments.kernel or build(Path(folder))
        became: Counter[str] = Counter()
        for draw in range(-(-given_arguments.calls // CHUNK)):
            became += fuzz(kernel, CHUNK, draw)
            sys.stdout.write(
                f"\r{sum(became.values()):,} calls: {became['right']:,} right, {became['refused']:,} refused"
            )
            sys.stdout.flush()
    sys.stdout.write(", 0 crashes\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
