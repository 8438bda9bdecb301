"""The kernel that is not there, or cannot be loaded, says so."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from sparsebert import attend, patterns
from sparsebert.attention import choose, sparse_library
from sparsebert.attention.inputs import Inputs
from sparsebert.errors import AttentionError


@pytest.fixture
def fresh_library() -> Iterator[None]:
    sparse_library.library.cache_clear()
    yield
    sparse_library.library.cache_clear()


@pytest.mark.usefixtures("fresh_library")
def test_without_a_kernel_sparse_raises_and_auto_takes_sdpa(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse_library, "_LIBRARY", tmp_path / "absent.so")
    query, pattern = torch.zeros(1, 1, 77, 8), patterns.window(77)
    with pytest.raises(AttentionError, match=r"compiler.*reinstall sparsebert"):
        attend(query, query, query, pattern=pattern, backend="sparse")
    assert choose(Inputs(query, query, query, pattern, None, 0.0, 1.0, None, None)).backend == "sdpa"
    assert attend(query, query, query, pattern=pattern).shape == query.shape


@pytest.mark.usefixtures("fresh_library")
def test_a_broken_kernel_raises_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "broken.so"
    broken.write_bytes(b"not a library")
    monkeypatch.setattr(sparse_library, "_LIBRARY", broken)
    query = torch.zeros(1, 1, 78, 8)
    with pytest.raises(AttentionError, match="cannot be loaded"):
        attend(query, query, query, pattern=patterns.window(78), backend="sparse")


def test_auto_says_what_it_chose_and_why() -> None:
    if not sparse_library.is_built():
        pytest.skip("the C++ kernel was not built: no C++ compiler")
    query = torch.zeros(1, 1, 64, 8)
    thin = choose(Inputs(query, query, query, patterns.window(64), None, 0.0, 1.0, None, None))
    thick = choose(Inputs(query, query, query, patterns.full(64), None, 0.0, 1.0, None, None))
    assert (thin.backend, thick.backend) == ("sparse", "sdpa")
    assert "density 0.046" in thin.reason
