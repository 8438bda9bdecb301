import pytest
import torch
from torch import nn

from sparsebert.training import launch
from sparsebert.training.launch import Ranks, joined, these_ranks


def ranks(rank: int, count: int) -> Ranks:
    return Ranks(rank, count, torch.device("cpu"))


def test_ranks_share_the_micro_batches_in_order() -> None:
    assert [list(ranks(rank, 3).share(6)) for rank in range(3)] == [[0, 1], [2, 3], [4, 5]]


def test_one_process_needs_no_peers() -> None:
    with joined(peer_timeout=1.0) as alone:
        assert (alone.rank, alone.count, alone.is_main) == (0, 1, True)
        assert alone.sum([1.0, 2.0]) == [1.0, 2.0]
        assert alone.agree("yes") == "yes"
        assert these_ranks() == Ranks(0, 1, torch.device("cpu"))


def test_gradients_travel_in_buckets_that_depend_on_sizes_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "_BUCKET", 10)
    parameters = [nn.Parameter(torch.zeros(size)) for size in (4, 5, 3, 20, 1)]
    assert [[len(p) for p in bucket] for bucket in launch._buckets(parameters)] == [[4, 5], [3], [20], [1]]


def test_the_rank_that_speaks_is_known_before_the_ranks_have_met(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")
    assert not launch.is_main()
    monkeypatch.delenv("RANK")
    assert launch.is_main()
