"""What is measured between two encoders, against numbers that can be checked by hand."""

import pytest
import torch

from sparsebert.model.head_pooling import pooled
from sparsebert.training.fidelity import FidelitySums, States, embedding_distances, hidden_errors

REAL = torch.tensor([[1.0, 1.0, 0.0]])
BEFORE = torch.zeros(1, 3, 2)
TEACHER = States([BEFORE, torch.tensor([[[3.0, 0.0], [0.0, 4.0], [9.0, 9.0]]])], REAL)
STUDENT = States([BEFORE, torch.tensor([[[3.0, 1.0], [2.0, 4.0], [0.0, 7.0]]])], REAL)


def test_the_error_is_relative_and_padding_counts_nowhere() -> None:
    torch.testing.assert_close(hidden_errors(STUDENT, TEACHER), torch.tensor([[(1.0 + 4.0) / (9.0 + 16.0)]]))
    assert hidden_errors(TEACHER, TEACHER).tolist() == [[0.0]]


def test_an_embedding_is_the_mean_of_real_tokens_or_the_first_one() -> None:
    assert TEACHER.embedding("mean").tolist() == [[1.5, 2.0]]
    assert TEACHER.embedding("cls").tolist() == [[3.0, 0.0]]


def test_a_row_without_tokens_pools_to_zeros() -> None:
    assert pooled(torch.ones(1, 3, 2), torch.zeros(1, 3), "mean").tolist() == [[0.0, 0.0]]


def test_the_distance_is_one_minus_the_cosine() -> None:
    opposite = States([BEFORE, -TEACHER.layers[1]], REAL)
    torch.testing.assert_close(embedding_distances(opposite, TEACHER, "mean"), torch.tensor([2.0]))
    torch.testing.assert_close(embedding_distances(TEACHER, TEACHER, "mean"), torch.tensor([0.0]))


def test_a_tally_is_the_mean_over_rows_whatever_the_batches() -> None:
    whole, parts = FidelitySums(), FidelitySums()
    errors, distances = torch.rand(3, 5), torch.rand(5)
    whole.add(errors, distances)
    parts.add(errors[:, :2], distances[:2])
    parts.add(errors[:, 2:], distances[2:])
    assert whole.figures().keys() == {"hidden_error", "embedding_distance"}
    for name, value in whole.figures().items():
        assert abs(parts.figures()[name] - value) < 1e-12


def test_a_distance_is_never_below_zero() -> None:
    sums = FidelitySums()
    sums.add(torch.zeros(2, 3), torch.tensor([-6e-8, 0.0, 3e-7]))
    assert sums.figures()["embedding_distance"] == pytest.approx(1e-7)
