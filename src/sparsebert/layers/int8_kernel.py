"""One call of the int8 kernel: tensors in, tensors out. Every array goes with its size, which C++ checks."""

import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int8, Int32, UInt8
from torch import Tensor

from sparsebert.attention.sparse_library import Array
from sparsebert.errors import LayerError
from sparsebert.layers.int8_library import ACTIVATIONS, LinearCall, Matrix, checked, linear_isa, run_linear

_CALL_BYTES = ctypes.sizeof(LinearCall)
_WIDTHS = {torch.float32: 4, torch.int32: 4, torch.int8: 1, torch.uint8: 1, torch.bfloat16: 2}
_TYPES = {torch.float32: 0, torch.bfloat16: 2}  # of rows, by the kernel's numbers


class Codes(NamedTuple):
    """Quantised rows. A row's marks are its scale and its code of 0: scale * (code - zero) is what was quantised."""

    codes: UInt8[Tensor, "rows width"]
    marks: Float[Tensor, "rows 2"]


class Norm(NamedTuple):
    """What nn.LayerNorm holds."""

    weight: Float[Tensor, " outputs"]
    bias: Float[Tensor, " outputs"]
    epsilon: float


class LinearResult(NamedTuple):
    """What a call was asked for; the rest is empty."""

    values: Float[Tensor, "rows outputs"]
    codes: Codes


class Packed:
    """A layer as the kernel reads it, filled up to whole units and steps; written into a call once, then copied."""

    def __init__(
        self,
        inputs: int,
        outputs: int,
        weights: Int8[Tensor, "units steps 16 4"],
        sums: Int32[Tensor, " filled"],
        scales: Float[Tensor, " filled"],
        bias: Float[Tensor, " filled"],
    ) -> None:
        self.inputs, self.outputs = inputs, outputs
        tensors = (weights, sums, scales, bias)
        self.addresses = addresses(tensors)
        self.alive = [tensor.detach() for tensor in tensors]  # a call holds only addresses: their memory must stay
        call = LinearCall(bytes=_CALL_BYTES, inputs=inputs, outputs=outputs)
        call.weights, call.weight_sums = _array(weights, torch.int8), _array(sums, torch.int32)
        call.weight_scales, call.bias = _array(scales, torch.float32), _array(bias, torch.float32)
        self.call = bytes(call)


_NOTHING = LinearResult(torch.empty(0), Codes(torch.empty(0), torch.empty(0)))


def addresses(tensors: Sequence[Tensor]) -> list[int]:
    """Where the tensors lie now: a tensor may be given other memory."""
    return [tensor.data_ptr() for tensor in tensors]


def linear(
    rows: Float[Tensor, "rows inputs"] | Codes,
    layer: Packed,
    *,
    values: bool = True,
    codes: bool = False,
    dtype: torch.dtype = torch.float32,
    **settings: Any,
) -> LinearResult:
    """norm(activation(rows weights' + bias) + residual), as values, as codes for a layer that follows, or both.

    dtype: of the values, float32 or bfloat16, as that of the rows may be. settings: as of prepared(), but for the room.
    """
    count = len(rows.codes if isinstance(rows, Codes) else rows)
    result = room(count, layer.outputs, values=values, codes=codes, dtype=dtype)
    checked(run_linear()(ctypes.byref(prepared(rows, layer, result, **settings))))
    return result


def prepared(
    rows: Float[Tensor, "rows inputs"] | Codes,
    layer: Packed,
    into: LinearResult,
    *,
    activation: str | None = None,
    residual: Float[Tensor, "rows outputs"] | None = None,
    norm: Norm | None = None,
    isa: int | None = None,
) -> LinearCall:
    """A call that is ready to run, and holds what it reads and writes."""
    call = LinearCall.from_buffer_copy(layer.call)
    call.activation, call.threads = ACTIVATIONS[activation], torch.get_num_threads()
    call.isa = linear_isa() if isa is None else isa
    if isinstance(rows, Codes):
        count, width = rows.codes.shape
        call.codes, call.marks = matrix(rows.codes, torch.uint8), _array(rows.marks, torch.float32)
    else:
        rows = _row_wise(rows)
        count, width = rows.shape
        call.value_type, call.values = _typed(rows)
    call.rows = count
    if width != layer.inputs:
        raise LayerError(f"an int8 layer was handed rows of {width} numbers; it takes {layer.inputs}")
    if residual is not None:
        residual = _row_wise(residual)
        if residual.shape != (count, layer.outputs):
            raise LayerError(
                f"an int8 layer was handed a residual of {list(residual.shape)}; expected {[count, layer.outputs]}"
            )
        call.residual = matrix(residual, torch.float32)
    if norm is not None:
        call.norm_weight, call.norm_bias = _array(norm.weight, torch.float32), _array(norm.bias, torch.float32)
        call.epsilon = norm.epsilon
    _hand_over(call, into)
    call.alive = (layer, rows, residual, norm, into)  # the structure itself holds only addresses
    return call


def room(
    count: int, outputs: int, *, values: bool = True, codes: bool = False, dtype: torch.dtype = torch.float32
) -> LinearResult:
    """Fresh memory for what a call is asked for."""
    made, made_codes = _NOTHING
    if values:
        made = torch.empty(count, outputs, dtype=dtype)
    if codes:
        marks = torch.empty(count, 2, dtype=torch.float32)
        made_codes = Codes(torch.empty(count, outputs, dtype=torch.uint8), marks)
    return LinearResult(made, made_codes)


def _hand_over(call: LinearCall, into: LinearResult) -> None:
    """Tell a call where its results go."""
    if into.values is not _NOTHING.values:
        call.out_type, call.out = _typed(into.values)
    if into.codes is not _NOTHING.codes:
        call.out_codes, call.out_marks = matrix(into.codes.codes, torch.uint8), _array(into.codes.marks, torch.float32)


def _array(tensor: Tensor, dtype: torch.dtype) -> Array:
    if tensor.dtype != dtype or tensor.device.type != "cpu" or not tensor.is_contiguous():
        raise LayerError(f"an int8 layer was handed {_told(tensor)}; it takes {dtype} without gaps, on the CPU, here")
    return Array(tensor.data_ptr(), tensor.numel() * _WIDTHS[dtype])


def _typed(rows: Tensor) -> tuple[int, Matrix]:
    """Rows of one of the types that the kernel quantises from and writes to."""
    dtype = rows.dtype if rows.dtype in _TYPES else torch.float32
    return _TYPES[dtype], matrix(rows, dtype)


def matrix(tensor: Tensor, dtype: torch.dtype) -> Matrix:
    """Where rows lie, as the kernel is told."""
    if tensor.dtype != dtype or tensor.device.type != "cpu":
        raise LayerError(f"an int8 layer was handed {_told(tensor)}; it takes rows of {dtype}, on the CPU, here")
    width = _WIDTHS[dtype]
    left = tensor.untyped_storage().nbytes() - tensor.storage_offset() * width
    return Matrix(tensor.data_ptr(), left, max(tensor.stride(0), tensor.shape[1]))


def _row_wise(tensor: Tensor) -> Tensor:
    """The tensor itself where each row's numbers lie one after another and rows apart; else a copy."""
    if tensor.ndim != 2:
        raise LayerError(f"an int8 layer was handed {_told(tensor)}; it takes rows [rows, numbers]")
    rows, width = tensor.shape
    apart = (tensor.stride(1) == 1 or width == 1) and (tensor.stride(0) >= width or rows <= 1)
    return tensor if apart else tensor.contiguous()


def _told(tensor: Tensor) -> str:
    return f"{tensor.dtype} {list(tensor.shape)} on {tensor.device}"
