"""The C++ kernel as ctypes sees it: where it is, its structures, its functions, after csrc/sparse_attention.h.

No torch headers are involved. The library asks for `libgomp.so.1`, the name of the copy that torch brings and has
loaded by the time we get here, so both share one OpenMP runtime and one set of threads.
"""

import ctypes
import functools
import os
from pathlib import Path
from typing import Any

import torch  # it loads the OpenMP runtime that the library then shares

from sparsebert.errors import AttentionError

ISAS = ("portable", "avx2", "avx512")  # instruction sets in rising order; their positions are the kernel's numbers
ISA_VARIABLE = "SPARSEBERT_ISA"
ALLOCATOR_VARIABLES = ("GLIBC_TUNABLES", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "MALLOC_TOP_PAD_")

_LIBRARY = Path(__file__).with_name("_sparse_kernel.so")
_int64, _double, _pointer = ctypes.c_int64, ctypes.c_double, ctypes.c_void_p


class Array(ctypes.Structure):
    """Numbers one after another."""

    _fields_ = [("data", _pointer), ("bytes", _int64)]


class Strided(ctypes.Structure):
    """A tensor [batch, head, row, column] whose columns lie one after another; strides in elements."""

    _fields_ = [("data", _pointer), ("bytes", _int64), ("batch", _int64), ("head", _int64), ("row", _int64)]


class Call(ctypes.Structure):
    """Everything one call hands over, each array with its size."""

    _fields_ = [
        *((name, _int64) for name in ("bytes", "index", "batch", "heads", "length", "size")),
        ("lengths", Array),
        ("packed", _int64),
        ("scale", _double),
        ("dropout", _double),
        ("seed", ctypes.c_uint64),
        *((name, Strided) for name in ("query", "key", "value", "out")),
        *((name, Strided) for name in ("grad_out", "grad_query", "grad_key", "grad_value")),
        *((name, Array) for name in ("bias", "grad_bias", "weights")),
        *((name, _int64) for name in ("dtype", "threads", "isa")),
    ]


_SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "sb_forward": (ctypes.c_int, [ctypes.POINTER(Call)]),
    "sb_backward": (ctypes.c_int, [ctypes.POINTER(Call)]),
    "sb_best_isa": (ctypes.c_int, []),
    "sb_index_build": (_int64, [_pointer, _int64, _pointer] + [_int64] * 5),
    "sb_index_free": (ctypes.c_int, [_int64]),
    "sb_index_count": (_int64, [_int64] * 3),
    "sb_index_copy": (ctypes.c_int, [_int64] * 3 + [_pointer, _int64]),
}

# What the kernel answers to a call that it refuses, by its code.
_REFUSALS = {
    1: "ran out of memory; use a smaller batch or a sparser pattern",
    2: "was called in a way that this build of it does not know; reinstall sparsebert",
    3: "was asked for an index that is gone; keep a reference to the pattern",
    4: "was handed sizes that are not those of its pattern; use inputs up to the pattern's length, and its heads",
    5: "was handed a tensor whose memory is smaller than its shape; pass tensors of [batch, heads, n, head size]",
    6: "was handed lengths that are not one number from 0 to n for each example; count each example's real tokens",
    7: "was handed a bias that is not one value per kept entry; give it the pattern's kept entries",
    8: "was handed attention weights of another call; take the gradient of the call that made them",
    9: "was handed rows that are no pattern's; build the pattern with sparsebert.patterns",
    10: "was asked for a part of an index that it does not have",
}


def checked(code: int) -> None:
    """Raise what the kernel refused."""
    if code:
        raise AttentionError(f"backend 'sparse' {_REFUSALS.get(code, f'answered with code {code}')}")


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def is_built() -> bool:
    """Whether the kernel was compiled when the package was installed."""
    return _LIBRARY.exists()


@functools.cache
def library() -> ctypes.CDLL:
    """The loaded kernel, or a sentence that says how to get it."""
    if not is_built():
        raise AttentionError(
            "the C++ kernel of backend='sparse' was not built with this installation; install a C++17 compiler with "
            "OpenMP (for instance g++) and reinstall sparsebert, or use backend='sdpa'"
        )
    try:
        loaded = ctypes.CDLL(str(_LIBRARY))
    except OSError as error:
        raise AttentionError(
            f"the C++ kernel of backend='sparse' cannot be loaded ({error}); reinstall sparsebert on this machine, "
            "or use backend='sdpa'"
        ) from error
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(loaded, name)
        function.restype, function.argtypes = result, arguments
    if not any(name in os.environ for name in ALLOCATOR_VARIABLES):
        _keep_freed_memory()
    return loaded


def _keep_freed_memory() -> None:
    """Have glibc hold on to freed results of up to 32 MiB, 256 MiB in all, for the next call.

    It would hand them back to the system, which clears every page before it lends it out again: 8 to 21 % of a forward
    and backward pass (docs/decisions/kernel-design.md). Whoever set the allocator in the environment is left alone.
    """
    trim_threshold, mmap_threshold = -1, -3  # glibc's names for them; other allocators have no mallopt, or ignore it
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(mmap_threshold, 32 << 20)
        mallopt(trim_threshold, 256 << 20)


def isa() -> int:
    """The instruction set to run: the best this processor has, or what SPARSEBERT_ISA names."""
    best = int(library().sb_best_isa())
    name = os.environ.get(ISA_VARIABLE)
    if not name:
        return best
    if name not in ISAS or ISAS.index(name) > best:
        able = ", ".join(ISAS[: best + 1])
        raise AttentionError(f"{ISA_VARIABLE} names {name!r}, but this processor can run {able}; set it to one of them")
    return ISAS.index(name)
