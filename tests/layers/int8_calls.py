"""Calls of the int8 kernel, right ones and ones whose structure has wrong numbers in it: in bounds, or refused."""

import ctypes
from typing import Any

import torch
from hypothesis import strategies as st

from sparsebert.layers import int8_kernel, linear
from sparsebert.layers.int8_library import (
    LINEAR_STEP,
    KernelStep,
    LinearCall,
    Matrix,
    best_linear_isa,
    run_linear,
    run_steps,
)
from tests.layers.cases import Case, allowed, cases, finished, halfway, quantised, weights

Drawn = tuple[Case, list[tuple[str, int]]]
_NUMBERS = st.integers(-3, 70) | st.sampled_from([2**31, 2**62, 2**63 - 1, -(2**63)])
_FIELDS = [name for name, kind in LinearCall._fields_ if kind is ctypes.c_int64]
_ROWS = [f"{name}.row" for name, kind in LinearCall._fields_ if kind is Matrix]


def calls() -> st.SearchStrategy[Drawn]:
    """A call, and numbers of its structure to overwrite. Addresses stay, and no array is said to be larger."""
    changes = st.lists(st.tuples(st.sampled_from(_FIELDS + _ROWS), _NUMBERS), max_size=3)
    return st.tuples(cases(), changes)


def make(drawn: Drawn) -> str:
    """right or refused; anything else is raised."""
    case, changes = drawn
    return _spoiled(case, changes) if changes else _right(case)


def _right(case: Case) -> str:
    layer, (residual, norm), values = case.layer(), case.more(), case.values()
    if case.seed % 3 == 0:
        values = values.bfloat16()
    isa = case.seed % (best_linear_isa() + 1)
    more: dict[str, Any] = {"activation": case.activation, "residual": residual, "norm": norm}
    found = linear(values, layer.packed, isa=isa, codes=True, **more).values
    if case.rows and norm is None:
        rounded, step = quantised(values)
        products = rounded @ weights(layer).t()
        expected = finished(products, case, layer, residual, norm)
        flips = (2.01 + halfway(values, step)) * step * weights(layer).abs().amax(1)
        slack = allowed(products, case, layer, residual, norm)
        assert bool(((found.double() - expected).abs() <= flips + slack).all())
    return "right"


def _spoiled(case: Case, changes: list[tuple[str, int]]) -> str:
    layer, (residual, norm), codes = case.layer().packed, case.more(), case.codes()
    call = LinearCall.from_buffer_copy(layer.call)
    call.activation, call.threads, call.isa, call.rows = 1, 2, best_linear_isa(), case.rows
    call.codes, call.marks = (
        int8_kernel.matrix(codes.codes, torch.uint8),
        int8_kernel._array(codes.marks, torch.float32),
    )
    if residual is not None:
        call.residual = int8_kernel.matrix(residual, torch.float32)
    if norm is not None:
        call.norm_weight = int8_kernel._array(norm.weight, torch.float32)
        call.norm_bias = int8_kernel._array(norm.bias, torch.float32)
    result = int8_kernel.room(case.rows, case.outputs, codes=True)
    int8_kernel._hand_over(call, result)
    for name, number in changes:
        owner, _, part = name.partition(".")
        setattr(getattr(call, owner) if part else call, part or owner, number)
    if case.seed % 2:
        code = run_linear()(ctypes.byref(call))
    else:  # as a step after one that is right
        right = int8_kernel.prepared(codes, layer, int8_kernel.room(case.rows, case.outputs))
        kind = case.seed % 6 // 2  # now and then one that there is not, or a call of the other kind
        pair = [(LINEAR_STEP, right), (kind, call)]
        steps = (KernelStep * 2)(*(KernelStep(which, ctypes.addressof(each)) for which, each in pair))
        code = run_steps()(steps, 2)
    del result
    assert code in (0, 2, 4, 5, 7, 8)
    return "refused" if code else "right"
