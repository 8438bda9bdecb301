"""A GPU that is not there: CPU tensors that say they are on cuda:0, and operations that refuse to mix devices.

Whatever is moved to or made on "cuda" is marked, by its storage, so that views, saved tensors and parameters whose
data is exchanged stay marked. A marked tensor answers cuda:0 when asked for its device. An operation that meets a
marked tensor and an unmarked one fails as a GPU's would: a number (0-dim) may come from the CPU, an index may, a copy
goes between them; numpy reads the CPU's memory alone. Attention under a pattern runs through Triton's interpreter.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

GPU = torch.device("cuda", 0)
_aten = torch.ops.aten
_MAY_MIX = {_aten.copy_.default, _aten._foreach_copy_.default}
_INDEXED = {_aten.index.Tensor, _aten.index_put.default, _aten.index_put_.default, _aten._index_put_impl_.default}
_ANSWERS: dict[Any, Any] = {
    Tensor.device.__get__: GPU,  # type: ignore[attr-defined]
    Tensor.is_cuda.__get__: True,  # type: ignore[attr-defined]
    Tensor.is_cpu.__get__: False,  # type: ignore[attr-defined]
    Tensor.get_device: 0,
}
_CUDA: dict[str, Any] = {
    "is_available": lambda: True,
    "set_device": lambda *_: None,
    "get_device_name": lambda *_: "a pretended GPU",
    "get_rng_state": lambda *_: torch.get_rng_state(),
    "set_rng_state": lambda *_: None,
}
_READS_MEMORY = {Tensor.numpy, Tensor.__array__}


class WrongDeviceError(RuntimeError):
    """What a GPU would have raised."""


class Marks:
    """Which storages are on the pretended GPU."""

    def __init__(self) -> None:
        self._refs: dict[int, StorageWeakRef] = {}

    def put(self, tensor: Tensor, on_gpu: bool) -> None:
        # The weak reference keeps the address from being used again.
        storage = tensor.untyped_storage()
        if on_gpu:
            self._refs[storage._cdata] = StorageWeakRef(storage)
        else:
            self._refs.pop(storage._cdata, None)

    def has(self, tensor: Tensor) -> bool:
        if tensor.layout != torch.strided or tensor.is_meta:
            return False
        mark = self._refs.get(tensor.untyped_storage()._cdata)
        return mark is not None and not mark.expired()


_marks = Marks()  # one for all: what the package caches for cuda:0 stays there


class _Devices(TorchFunctionMode):
    """Answers where tensors are, and puts them there: what torch's Python side decides by itself."""

    def __init__(self, marks: Marks) -> None:
        super().__init__()
        self.marks = marks

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if args and isinstance(args[0], Tensor) and self.marks.has(args[0]):
            if func in _ANSWERS:
                return _ANSWERS[func]
            if func in _READS_MEMORY:
                raise WrongDeviceError("numpy cannot read a tensor on cuda:0; move it to the CPU first")
        if func in (Tensor.to, Tensor.cpu, Tensor.cuda):
            return self._moved(func, args, kwargs)
        wanted = kwargs.get("device")
        if wanted is None or torch.device(wanted).type not in ("cuda", "cpu"):
            return func(*args, **kwargs)
        made = func(*args, **{**kwargs, "device": "cpu"})
        if isinstance(made, Tensor):
            self.marks.put(made, torch.device(wanted).type == "cuda")
        return made

    def _moved(self, func: Any, args: Any, kwargs: Any) -> Tensor:
        source, *rest = args
        places = [kwargs.pop("device", None), *(one for one in rest if isinstance(one, str | torch.device))]
        places += [GPU if self.marks.has(one) else torch.device("cpu") for one in rest if isinstance(one, Tensor)]
        place = {Tensor.cpu: "cpu", Tensor.cuda: "cuda"}.get(func) or next((p for p in places if p is not None), None)
        others = [one.dtype if isinstance(one, Tensor) else one for one in rest]
        others = [one for one in others if not isinstance(one, str | torch.device | int)]
        kwargs.pop("memory_format", None)
        moved: Tensor = source.to(*others, **kwargs) if others or kwargs else source
        on_gpu = self.marks.has(source) if place is None else torch.device(place).type == "cuda"
        if on_gpu != self.marks.has(source) and moved.data_ptr() == source.data_ptr():
            moved = moved.clone()
        if not moved.is_meta:
            self.marks.put(moved, on_gpu)
        return moved


class _Operations(TorchDispatchMode):
    """Looks at every operation, forward and backward."""

    def __init__(self, marks: Marks) -> None:
        super().__init__()
        self.marks = marks
        self.attention: set[str] = set()  # operators of the Triton backend that ran

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        taken = [one for one in tree_leaves((args, kwargs)) if isinstance(one, Tensor) and not one.is_meta]
        marked = [self.marks.has(one) for one in taken]
        if any(marked):
            self._check(func, args, taken, marked)
        result = func(*args, **kwargs)
        on_gpu = self.marks.has(taken[0]) if func in _MAY_MIX and taken else any(marked)
        for one in tree_leaves(result):
            if isinstance(one, Tensor) and not one.is_meta and on_gpu:
                self.marks.put(one, True)
        return result

    def _check(self, func: Any, args: Any, taken: list[Tensor], marked: list[bool]) -> None:
        name = str(func)
        if name.startswith("sparsebert.attention"):
            raise WrongDeviceError(f"{name} runs on the CPU and was given tensors on cuda:0")
        if name.startswith("sparsebert.triton"):
            self.attention.add(name)
        if func in _MAY_MIX:
            return
        if func in _INDEXED:
            indices = {id(one) for one in tree_leaves(args[1]) if isinstance(one, Tensor)}
            if self.marks.has(args[0]):
                marked = [mark or id(one) in indices for one, mark in zip(taken, marked, strict=True)]
        strays = [tuple(one.shape) for one, mark in zip(taken, marked, strict=True) if not mark and one.ndim > 0]
        if strays:
            raise WrongDeviceError(f"{name} meets tensors on cuda:0 and on the CPU, the latter of shape {strays[0]}")


@contextmanager
def pretended_gpu() -> Iterator[_Operations]:
    """Runs train on cuda:0 inside; every operation is looked at."""
    operations = _Operations(_marks)
    with pytest.MonkeyPatch.context() as patch:
        for name, answer in _CUDA.items():
            patch.setattr(torch.cuda, name, answer)
        with operations, _Devices(_marks):
            yield operations
