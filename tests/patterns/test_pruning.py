"""Two-stage pruning of a learned P."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sparsebert import patterns
from sparsebert.errors import PatternError


def test_the_highest_entries_of_every_head_stay() -> None:
    importance = np.array([[[0.9, 0.1], [0.2, 0.8]], [[0.1, 0.9], [0.8, 0.2]]])
    pruned = patterns.prune(importance, 0.5)
    assert pruned.picture(0) == "#.\n.#"
    assert pruned.picture(1) == ".#\n#."


@given(st.integers(2, 20), st.floats(0, 1), st.integers(0, 99))
def test_every_head_keeps_the_same_number_and_nothing_lower_than_what_it_drops(
    n: int, sparsity: float, seed: int
) -> None:
    importance = torch.rand(3, n, n, generator=torch.Generator().manual_seed(seed))
    pruned = patterns.prune(importance, sparsity)
    keep = pruned.keep()
    assert (keep.sum((1, 2)) == round((1 - sparsity) * n * n)).all()
    for head in range(3):
        kept, dropped = importance[head][keep[head]], importance[head][~keep[head]]
        assert not len(kept) or not len(dropped) or kept.min() >= dropped.max()


def test_ties_are_decided_by_position() -> None:
    assert patterns.prune(np.ones((1, 3, 3)), 5 / 9).picture() == "###\n#..\n..."


@pytest.mark.parametrize(
    ("importance", "sparsity"),
    [(np.ones((2, 3, 4)), 0.5), (np.ones((3, 3)), 0.5), (np.full((1, 2, 2), np.nan), 0.5), (np.ones((1, 2, 2)), 1.1)],
)
def test_what_cannot_be_pruned_is_refused(importance: np.ndarray, sparsity: float) -> None:
    with pytest.raises(PatternError):
        patterns.prune(importance, sparsity)
