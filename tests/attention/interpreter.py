"""Triton's kernels on a machine without a GPU: its interpreter, on CPU tensors. With a GPU, the tests run there."""

import os
from collections.abc import Iterator
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from sparsebert.attention import triton_index

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
_prepared: set[frozenset[str]] = set()
needs_triton = pytest.mark.skipif(find_spec("triton") is None, reason="triton is not installed: pip install triton")


@pytest.fixture
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half the interpreter's time: it prepares the language at each call of a function, here once a process."""
    from triton.runtime import interpreter

    def prepare_once(function: Any) -> SimpleNamespace:
        modules = frozenset(name for name, value in function.__globals__.items() if value is tl or value is tl.core)
        if modules not in _prepared:
            _prepared.add(modules)
            _prepare(function)
        return SimpleNamespace(restore=lambda: None)

    tl, _prepare = interpreter.tl, interpreter._patch_lang
    monkeypatch.setattr(interpreter, "_patch_lang", prepare_once)


@pytest.fixture
def short_pieces(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Lines of more than 12 entries are long, so that short inputs have them."""
    from sparsebert.attention import triton_launch

    triton_index.find.cache_clear()
    monkeypatch.setattr(triton_index, "PIECE", 12)
    monkeypatch.setattr(triton_launch, "PIECE", 12)
    yield
    triton_index.find.cache_clear()


def number_of_cases(usual: int) -> int:
    """How many random cases to try: TRITON_CASES, or as many as fit into the test run."""
    return int(os.environ.get("TRITON_CASES", usual))
