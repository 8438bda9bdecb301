"""Dense and sparse by turns: what is timed, and under which pattern."""

from pathlib import Path

import pytest

from sparsebert import load_model, patterns
from sparsebert.runs import timing


def test_a_pattern_is_timed_at_a_length_beyond_the_models_positions(tmp_path: Path) -> None:
    model = load_model("scratch:tiny", vocab_size=40, max_position_embeddings=16)
    model.save_pretrained(tmp_path)
    pattern = patterns.window(length=16, heads=2, radius=1)
    took = timing.time_forward(str(tmp_path), pattern, 48, rounds=1)
    assert took.length == 48
    assert took.keys_per_query == pattern.at(48).keys_per_query
    assert took.dense > 0
    assert took.sparse > 0


def test_of_several_turns_the_median_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load_model("scratch:tiny", vocab_size=40, max_position_embeddings=16).save_pretrained(tmp_path)
    warming = [0.0, 0.0]  # the first turn asks for its starts alone
    turns = [0.0, 3.0, 0.0, 1.0, 0.0, 4.0, 0.0, 1.5, 0.0, 8.0, 0.0, 7.0]  # start and stop of dense, of sparse, ...
    moments = iter([*warming, *turns])
    monkeypatch.setattr(timing.time, "process_time", lambda: next(moments))
    took = timing.time_forward(str(tmp_path), patterns.window(length=16, heads=2, radius=1), 16, rounds=3)
    assert (took.dense, took.sparse) == (4.0, 1.5)
    assert took.speedup == pytest.approx(4.0 / 1.5)
