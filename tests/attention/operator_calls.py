"""Calls of the sparse operator, right and wrong ones: sizes, strides, types, devices, patterns of another length,
transforms, threads. A right call must give the oracle's answer, a wrong one a sentence; nothing else may happen.
"""

import ctypes
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from hypothesis import strategies as st
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from sparsebert import attend, patterns
from sparsebert.attention.sparse_indices import Indices, rows_of
from sparsebert.attention.sparse_kernel import Operands, as_array, hand_over, new_call
from sparsebert.attention.sparse_library import Call, Strided, library
from sparsebert.errors import SparseBertError
from sparsebert.patterns import Pattern
from tests.attention.cases import rounding

DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16]
LAYOUTS = ["plain", "bert", "gaps", "offset", "expanded", "turned"]
WAYS = ["plain", "no_grad", "inference", "checkpoint", "func_grad", "vmap", "threads", "unsaved"]
FAULTS = [
    "lengths",
    "heads",
    "shorter pattern",
    "key shape",
    "key type",
    "device",
    "bias",
    "dropout",
    "rank",
    "no size",
]


@dataclass(frozen=True)
class OperatorCall:
    """One call through attend()."""

    batch: int
    heads: int
    length: int
    size: int
    dtype: torch.dtype
    layout: str
    pattern: Pattern
    lengths: tuple[int, ...] | None
    packed: bool
    bias: bool
    dropout: float
    threads: int
    way: str
    fault: str | None
    seed: int

    def tensors(self) -> list[Tensor]:
        """Query, key and value."""
        generator = torch.Generator().manual_seed(self.seed)
        rows, tokens = (1, sum(self.lengths or ())) if self.packed else (self.batch, self.length)
        shape = (rows, self.heads, tokens, self.size)
        return [laid_out(torch.randn(shape, generator=generator), self.layout, self.dtype) for _ in range(3)]

    def settings(self) -> dict[str, Any]:
        generator = torch.Generator().manual_seed(self.seed + 1)
        bias = torch.randn(self.pattern.kept, generator=generator) if self.bias else None
        lengths = None if self.lengths is None else torch.tensor(self.lengths, dtype=torch.int64)
        settings = {"pattern": self.pattern, "lengths": lengths, "bias": bias, "dropout": self.dropout}
        return settings | {"packed": self.packed}


def laid_out(tensor: Tensor, layout: str, dtype: torch.dtype) -> Tensor:
    tensor = tensor.to(dtype)
    if layout == "bert":
        return tensor.transpose(1, 2).contiguous().transpose(1, 2)
    if layout == "gaps":
        return torch.stack([tensor, tensor], dim=-1)[..., 0]
    if layout == "offset":  # from the middle of a larger piece of memory
        return torch.cat([tensor.reshape(-1)[:3].new_zeros(3), tensor.reshape(-1)])[3:].view(tensor.shape)
    if layout == "expanded" and tensor.shape[2]:  # every row is the same memory
        return tensor[:, :, :1].expand(tensor.shape)
    if layout == "turned":
        return tensor.transpose(-1, -2).contiguous().transpose(-1, -2)
    return tensor


@st.composite
def operator_calls(draw: st.DrawFn) -> OperatorCall:
    length = draw(st.one_of(st.integers(0, 9), st.integers(1, 80), st.sampled_from([128, 300, 520])))
    heads, batch = draw(st.integers(1, 4)), draw(st.integers(0, 3))
    longer = max(1, length + draw(st.sampled_from([0, 0, 1, 7])))
    pattern_heads = draw(st.sampled_from([1, heads]))
    pattern = patterns.random(longer, pattern_heads, sparsity=draw(st.sampled_from([0.3, 0.9, 0.97, 1.0])))
    if draw(st.booleans()):
        pattern = pattern | patterns.border(longer)
    lengths = draw(st.none() | st.tuples(*[st.integers(0, length)] * batch))
    return OperatorCall(
        batch,
        heads,
        length,
        draw(st.sampled_from([1, 3, 8, 16, 33, 64, 70])),
        draw(st.sampled_from(DTYPES)),
        draw(st.sampled_from(LAYOUTS)),
        pattern.anchored(draw(st.sampled_from(["position", "token"]))),
        lengths,
        lengths is not None and draw(st.booleans()),
        draw(st.booleans()),
        draw(st.sampled_from([0.0, 0.0, 0.4])),
        draw(st.integers(1, 4)),
        draw(st.sampled_from(WAYS)),
        draw(st.none() | st.none() | st.sampled_from(FAULTS)),
        draw(st.integers(0, 10**6)),
    )


def make(call: OperatorCall) -> str:
    """What became of a call: "right" or "refused"; anything else raises."""
    with _threads(call.threads):
        if call.fault is not None:
            return _refused(call)
        found = WAYS_TO_CALL[call.way](call)
        if call.dropout == 0:
            expected = _answers(call, "reference", torch.float64)
            terms = max(1, call.length * call.batch * call.heads)
            for right, answer in zip(expected, found, strict=False):
                assert answer.isfinite().all()
                off = (right - answer.double()).abs()
                assert not off.numel() or off.max() <= rounding(right, call.dtype, terms), (call, float(off.max()))
        assert all(answer.isfinite().all() for answer in found)
    return "right"


@contextmanager
def _threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _run(call: OperatorCall, leaves: list[Tensor], backend: str = "sparse") -> Tensor:
    settings = call.settings()
    if backend == "reference" and settings["bias"] is not None:
        settings["bias"] = settings["bias"].double()
    torch.manual_seed(call.seed)
    return attend(*leaves, **settings, backend=backend)


def _answers(call: OperatorCall, backend: str, dtype: torch.dtype) -> list[Tensor]:
    """The output, and the gradients of its sum of squares."""
    leaves = [tensor.detach().to(dtype).requires_grad_() for tensor in call.tensors()]
    output = _run(call, leaves, backend)
    return [output.detach(), *torch.autograd.grad(output, leaves, torch.ones_like(output), materialize_grads=True)]


def _plain(call: OperatorCall) -> list[Tensor]:
    leaves = [tensor.detach().requires_grad_() for tensor in call.tensors()]
    output = _run(call, leaves)
    return [output.detach(), *torch.autograd.grad(output, leaves, torch.ones_like(output), materialize_grads=True)]


def _no_grad(call: OperatorCall) -> list[Tensor]:
    with torch.no_grad():
        return [_run(call, call.tensors())]


def _inference(call: OperatorCall) -> list[Tensor]:
    with torch.inference_mode():
        return [_run(call, call.tensors())]


def _checkpoint(call: OperatorCall) -> list[Tensor]:
    leaves = [tensor.detach().requires_grad_() for tensor in call.tensors()]
    output = checkpoint(lambda *each: _run(call, list(each)), *leaves, use_reentrant=False)
    return [output.detach(), *torch.autograd.grad(output, leaves, torch.ones_like(output), materialize_grads=True)]


def _func_grad(call: OperatorCall) -> list[Tensor]:
    def total(*leaves: Tensor) -> tuple[Tensor, Tensor]:
        output = _run(call, list(leaves))
        return output.sum(), output

    grads, output = torch.func.grad(total, argnums=(0, 1, 2), has_aux=True)(*call.tensors())
    return [output, *grads]


def _vmap(call: OperatorCall) -> list[Tensor]:
    query, key, value = call.tensors()
    if call.dropout:
        return _plain(call)
    settings = call.settings()
    mapped = torch.func.vmap(lambda each: attend(each, key, value, **settings, backend="sparse"))
    return [mapped(torch.stack([query, query]))[1]]


def _at_once(call: OperatorCall) -> list[Tensor]:
    """Three threads make the same call; all must get the same."""
    found: list[list[Tensor]] = []
    workers = [threading.Thread(target=lambda: found.append(_answers(call, "sparse", call.dtype))) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(found) == 3
    if call.dropout == 0:
        for each in found[1:]:
            assert all(torch.equal(left, right) for left, right in zip(found[0], each, strict=True))
    return found[0]


def _unsaved(call: OperatorCall) -> list[Tensor]:
    """The gradient of a call that saved no weights, as a traced graph makes it."""
    query, key, value = (tensor.detach().requires_grad_() for tensor in call.tensors())
    settings = call.settings()
    bias = settings["bias"]
    if bias is not None and call.dtype == torch.float64:
        bias = bias.double()
    output = torch.ops.sparsebert.attention(
        query,
        key,
        value,
        bias,
        settings["lengths"],
        torch.tensor([call.seed]) if call.dropout else None,
        *rows_of(call.pattern),
        call.pattern.digest,
        call.pattern.anchor == "token",
        call.size**-0.5,
        call.dropout,
        call.packed,
        False,
    )[0]
    grads = torch.autograd.grad(output, (query, key, value), torch.ones_like(output), materialize_grads=True)
    return [output.detach(), *grads]


WAYS_TO_CALL: dict[str, Callable[[OperatorCall], list[Tensor]]] = {
    "plain": _plain,
    "no_grad": _no_grad,
    "inference": _inference,
    "checkpoint": _checkpoint,
    "func_grad": _func_grad,
    "vmap": _vmap,
    "threads": _at_once,
    "unsaved": _unsaved,
}


def _refused(call: OperatorCall) -> str:
    """The call with one thing wrong, through attend() and past it, straight into the operator."""
    (query, key, value), settings = call.tensors(), call.settings()
    query, key, value, settings = _spoiled(call, query, key, value, settings)
    try:
        attend(query, key, value, **settings, backend="sparse")
    except SparseBertError:
        pass
    else:
        raise AssertionError(f"accepted: {call}")
    pattern: Pattern = settings["pattern"]
    arguments = (query, key, value, settings["bias"], settings["lengths"], torch.tensor([1]), *rows_of(pattern))
    try:
        torch.ops.sparsebert.attention(
            *arguments,
            pattern.digest,
            pattern.anchor == "token",
            0.5,
            settings["dropout"],
            settings["packed"],
            call.seed % 2 == 0,
        )
    except SparseBertError:
        pass
    except RuntimeError:  # torch itself refuses an operator on a device that it is not made for
        if call.fault != "device":
            raise
    # Where no error came, the operator could give a meaning to what attend() refuses.
    return "refused"


def _spoiled(
    call: OperatorCall, query: Tensor, key: Tensor, value: Tensor, settings: dict[str, Any]
) -> tuple[Tensor, Tensor, Tensor, dict[str, Any]]:
    chance = random.Random(call.seed)
    wrong: dict[str, Callable[[], Any]] = {
        "lengths": lambda: settings.update(
            lengths=chance.choice(
                [
                    torch.full((call.batch + 1,), call.length + call.packed),
                    torch.full((max(call.batch, 1),), call.length + 1),
                    torch.full((max(call.batch, 1),), -1),
                    torch.full((max(call.batch, 1), 1), 1),
                    torch.ones(call.batch),
                ]
            )
        ),
        "heads": lambda: settings.update(pattern=patterns.window(max(call.length, 1), heads=call.heads + 1), bias=None),
        "bias": lambda: settings.update(bias=torch.zeros(call.pattern.kept + 1)),
        "dropout": lambda: settings.update(dropout=chance.choice([1.0, -0.1, 7.0])),
    }
    if call.fault == "lengths" and call.batch == 0:
        settings["lengths"] = torch.ones(3, dtype=torch.int64)
    elif call.fault == "shorter pattern":
        query, key, value = (torch.zeros(1, call.heads, call.length + 30, 4, dtype=call.dtype) for _ in range(3))
        settings.update(lengths=None, packed=False)
    elif call.fault == "heads" and call.heads == 1:
        settings.update(pattern=patterns.random(max(call.length, 1), 3, sparsity=0.5), bias=None)
    elif call.fault in wrong:
        wrong[call.fault]()
    elif call.fault == "key shape":
        key = key.new_zeros(call.batch, call.heads, call.length + 1, call.size)
    elif call.fault == "key type":
        value = value.to(torch.float64 if call.dtype == torch.float32 else torch.float32)
    elif call.fault == "device":
        key = key.to("meta")
    elif call.fault == "rank":
        query = query.reshape(-1)
    else:
        query, key, value = (each[..., :0] for each in (query, key, value))
    return query, key, value, settings


@st.composite
def spoiled_structures(draw: st.DrawFn) -> tuple[int, list[tuple[str, int]]]:
    """Numbers of a call's structure overwritten with others. Addresses stay, and no array is said to be larger."""
    fields = [name for name, kind in Call._fields_ if kind is ctypes.c_int64]
    strides = [f"{name}.{part}" for name, kind in Call._fields_ if kind is Strided for part in ("batch", "head", "row")]
    numbers = st.integers(-3, 70) | st.sampled_from([2**31, 2**62, 2**63 - 1, -(2**63)])
    return draw(st.integers(0, 99)), draw(
        st.lists(st.tuples(st.sampled_from(fields + strides), numbers), min_size=1, max_size=4)
    )


def make_spoiled(seed: int, changes: list[tuple[str, int]]) -> str:
    """A structure as Python fills it, with some numbers changed: answered with a code, or carried out in bounds."""
    chance = random.Random(seed)
    pattern = patterns.random(24, chance.choice([1, 2]), sparsity=0.7)
    indices = Indices(*rows_of(pattern), False, 24)
    tensors = [torch.randn(2, 2, 24, 8) for _ in range(8)]
    weights = torch.zeros(2 * (2 if pattern.heads == 1 else 1) * pattern.kept)
    call = new_call(indices, Operands(*tensors[:3], None, torch.tensor([24, 9]), None, scale=0.3, dropout=0.0))
    names = ("out", "grad_out", "grad_query", "grad_key", "grad_value")
    hand_over(call, tensors[0], **dict(zip(names, tensors[3:], strict=True)))
    call.weights = as_array(weights, torch.float32)
    for name, number in changes:
        owner, _, part = name.partition(".")
        if part:
            setattr(getattr(call, owner), part, number)
        elif owner != "index" or number <= 0:  # another index that is alive has sizes of its own, which is checked too
            setattr(call, owner, number)
    codes = [library().sb_forward(ctypes.byref(call)), library().sb_backward(ctypes.byref(call))]
    assert all(0 <= code <= 10 for code in codes)
    return "refused" if any(codes) else "right"
