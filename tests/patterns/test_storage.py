"""Pattern files: what is saved is what is loaded, and nothing else is accepted."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsebert import Pattern, patterns
from sparsebert.errors import SparseBertError
from sparsebert.files import seal_tensors
from sparsebert.patterns.storage import from_bytes, to_bytes
from tests.patterns.test_pattern import any_pattern

SOMEWHERE = Path("pattern.safetensors")


@given(any_pattern(), st.sampled_from(["position", "token"]))
def test_a_pattern_comes_back_as_it_was_saved(pattern: Pattern, anchor: patterns.Anchor) -> None:
    pattern = pattern.anchored(anchor)
    data = to_bytes(pattern)
    loaded = from_bytes(data, SOMEWHERE, patterns.Pattern)
    assert loaded == pattern
    assert loaded.rule == pattern.rule
    assert to_bytes(loaded) == data


def test_saving_and_loading_a_file(tmp_path: Path) -> None:
    pattern = patterns.big_bird(32, heads=2, seed=4)
    pattern.save(tmp_path / "deep" / "p.safetensors")
    loaded = Pattern.load(tmp_path / "deep" / "p.safetensors")
    assert loaded == pattern
    assert loaded.at(64) == patterns.big_bird(64, heads=2, seed=4)
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["p.safetensors"]


def test_any_one_flipped_bit_is_noticed() -> None:
    data = to_bytes(patterns.star(6))
    for bit in range(len(data) * 8):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(SparseBertError):
            from_bytes(bytes(damaged), SOMEWHERE, patterns.Pattern)


@pytest.mark.parametrize("size", [0, 7, 8, 100, 400])
def test_a_truncated_file_is_noticed(size: int) -> None:
    with pytest.raises(SparseBertError):
        from_bytes(to_bytes(patterns.star(6))[:size], SOMEWHERE, patterns.Pattern)


@settings(max_examples=200)
@given(st.binary(max_size=300))
def test_foreign_bytes_give_only_our_error(data: bytes) -> None:
    with pytest.raises(SparseBertError):
        from_bytes(data, SOMEWHERE, patterns.Pattern)


def _sealed(**changes: object) -> bytes:
    about = {"kind": "pattern", "format": 1, "heads": 1, "length": 2, "anchor": "position", "rule": None}
    tensors = {"row_starts": np.array([[0, 1, 2]]), "keys": np.array([0, 1], dtype=np.int32)}
    fields = {key: value for key, value in changes.items() if key not in tensors}
    arrays = {key: value for key, value in changes.items() if key in tensors}
    return seal_tensors({**tensors, **arrays}, {**about, **fields})  # type: ignore[dict-item]


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": "gate"},
        {"format": 2},
        {"heads": 2},
        {"length": 3},
        {"length": 10**12},
        {"heads": "many"},
        {"anchor": "sea"},
        {"keys": np.array([0, 7], dtype=np.int32)},
        {"keys": np.array([0, -1], dtype=np.int32)},
        {"keys": np.array([0.0, 1.0])},
        {"row_starts": np.array([[0, 9, 2]])},
        {"row_starts": np.array([[0, -1, 2]])},
    ],
)
def test_well_sealed_nonsense_is_refused_before_use(changes: dict[str, object]) -> None:
    with pytest.raises(SparseBertError):
        from_bytes(_sealed(**changes), SOMEWHERE, patterns.Pattern)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SparseBertError, match="nowhere"):
        Pattern.load(tmp_path / "nowhere")
