"""Products of float32 matrices at a processor's full speed, where torch's own library for them holds back.

torch multiplies float32 matrices with MKL, which gives a processor of another maker than its own half-wide
instructions. oneDNN, which torch has too, asks what the processor can do: 250 against 115 GFLOP/s on a core of Zen 5
(docs/decisions/float32-products.md). The way there is a setting that allows bfloat16 inside a product; oneDNN makes no
use of that leave where no unit for it (AMX) is, which is tried out before it is relied on. So numbers stay float32,
added up in another order.
"""

import contextlib
import functools
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch


class _Switch:
    """torch's setting is one for the whole process: on while anyone is inside, in any thread."""

    def __init__(self) -> None:
        self.lock, self.inside = threading.Lock(), 0

    def enter(self) -> bool:
        """Whether it is on now; not where the caller asked torch for a precision of its own."""
        with self.lock:
            if not self.inside and _setting().fp32_precision != "none":
                return False
            self.inside += 1
            _setting().fp32_precision = "bf16"
            return True

    def leave(self) -> None:
        with self.lock:
            self.inside -= 1
            if not self.inside:
                _setting().fp32_precision = "none"


_switch = _Switch()


@contextlib.contextmanager
def full_speed_products() -> Iterator[None]:
    """Inside, products of float32 on the CPU take the fast way, if this machine has one. Serves as a decorator too."""
    is_on = is_held_back() and _switch.enter()
    try:
        yield
    finally:
        if is_on:
            _switch.leave()


@functools.cache
def is_held_back() -> bool:
    """Whether there is a faster way than torch's usual one, and one that stays in float32."""
    about: Any = torch.backends  # without types
    able = about.mkldnn.is_available() and about.mkl.is_available() and torch.cpu._is_avx512_bf16_supported()
    if not (able and _is_amd()) or torch.cpu._is_amx_tile_supported():
        return False
    return _stays_exact()


def _stays_exact() -> bool:
    """Whether the fast way keeps bits that bfloat16 has not."""
    setting = _setting()
    before = setting.fp32_precision
    try:
        setting.fp32_precision = "bf16"
        fine = 1 + 2.0**-12
        products = torch.full((64, 384), fine) @ torch.ones(384, 384)
    finally:
        setting.fp32_precision = before
    return bool((products == 384 * fine).all())


def _setting() -> Any:
    about: Any = torch.backends
    return about.mkldnn.matmul


def _is_amd() -> bool:
    about = Path("/proc/cpuinfo")  # of Linux
    return about.exists() and "AuthenticAMD" in about.read_text()
