"""The C++ kernel of int8 layers as ctypes sees it, after csrc/int8_linear.h; it is part of attention's library."""

import ctypes
import functools
import os
from typing import Any

from sparsebert.attention.sparse_library import ISA_VARIABLE, ISAS, Array, is_built, isa, library
from sparsebert.errors import LayerError

# Instruction sets in rising order; their positions are the kernel's numbers.
LINEAR_ISAS = (*ISAS, "vnni")
UNIT, STEP = 16, 4  # weights lie in units of so many outputs and steps of so many inputs
WIDEST = 32_768  # inputs or outputs of a layer: their sums still fit 32 bits
ACTIVATIONS = {None: 0, "gelu": 1, "relu": 2}

_int64, _pointer = ctypes.c_int64, ctypes.c_void_p


class Matrix(ctypes.Structure):
    """Rows whose numbers lie one after another; `row` is the stride in elements."""

    _fields_ = [("data", _pointer), ("bytes", _int64), ("row", _int64)]


class LinearCall(ctypes.Structure):
    """Everything one call hands over, each array with its size."""

    _fields_ = [
        *((name, _int64) for name in ("bytes", "rows", "inputs", "outputs", "value_type")),
        ("values", Matrix),
        ("codes", Matrix),
        *((name, Array) for name in ("marks", "weights", "weight_sums", "weight_scales", "bias")),
        ("activation", _int64),
        ("residual", Matrix),
        ("norm_weight", Array),
        ("norm_bias", Array),
        ("epsilon", ctypes.c_double),
        ("out_type", _int64),
        ("out", Matrix),
        ("out_codes", Matrix),
        ("out_marks", Array),
        ("threads", _int64),
        ("isa", _int64),
    ]


class KernelStep(ctypes.Structure):
    """One of several calls that run one after another."""

    _fields_ = [("kind", _int64), ("call", _pointer)]


LINEAR_STEP, ATTENTION_STEP = 0, 1

# What the kernel answers to a call that it refuses, by its code.
_REFUSALS = {
    1: "ran out of memory; use a smaller batch",
    2: "was called in a way that this build of it does not know; reinstall sparsebert",
    4: f"was handed sizes that it does not take; expected 1 to {WIDEST:,} inputs and outputs",
    5: "was handed a tensor whose memory is smaller than its shape, or that lies over another; pass tensors apart",
    7: "was handed a bias or a norm that is not one number for each output; quantise the layer again",
    8: "was handed weights that are not those of its sizes; quantise the layer again",
}


def checked(code: int) -> None:
    """Raise what the kernel refused."""
    if code:
        raise LayerError(f"an int8 layer {_REFUSALS.get(code, f'answered with code {code}')}")


@functools.cache
def run_linear() -> Any:
    """The kernel's one function, or a sentence that says how to get it."""
    require_kernel()
    function = library().sb_run_linear
    function.restype, function.argtypes = ctypes.c_int, [ctypes.POINTER(LinearCall)]
    return function


@functools.cache
def run_steps() -> Any:
    """The same for several calls at once."""
    require_kernel()
    function = library().sb_run_steps
    function.restype, function.argtypes = ctypes.c_int, [ctypes.POINTER(KernelStep), _int64]
    return function


def require_kernel() -> None:
    """Refuse int8 where the C++ kernel was not built."""
    if not is_built() or not hasattr(library(), "sb_run_steps"):  # as of a library that was built before there was one
        raise LayerError(
            "int8 layers need their C++ kernel, which was not built with this installation; install a C++17 compiler "
            "with OpenMP (for instance g++) and reinstall sparsebert, or stay in float32"
        )


def linear_isa() -> int:
    """The instruction set to run: the best this processor has, or what SPARSEBERT_ISA names."""
    return isa() if os.environ.get(ISA_VARIABLE) else best_linear_isa()


@functools.cache
def best_linear_isa() -> int:
    require_kernel()
    return int(library().sb_best_linear_isa())
