"""The ranks of a run: one process, or several that torchrun started; gloo between CPUs, NCCL between GPUs."""

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
from torch import distributed, nn

from sparsebert.errors import RunInterruptedError, TrainingError
from sparsebert.training.watchdog import Watchdog

_BUCKET = 2**24  # gradient values sent at once: few messages, and no second copy of a large model
# Rank 0 evaluates and writes while the others wait; the watchdog, not this, notices a rank that is gone.
_COLLECTIVE_TIMEOUT = timedelta(hours=12)


@dataclass(frozen=True)
class Ranks:
    """This process among its peers; with one process every method is free."""

    rank: int
    count: int
    device: torch.device

    @property
    def is_main(self) -> bool:
        """Whether this is the rank that writes."""
        return self.rank == 0

    def share(self, micro_batches: int) -> range:
        """The micro-batches of every step that this rank computes."""
        each = micro_batches // self.count
        return range(self.rank * each, (self.rank + 1) * each)

    def sum(self, numbers: Sequence[float]) -> list[float]:
        """Each number added up over the ranks."""
        if self.count == 1:
            return list(numbers)
        sums = torch.tensor(numbers, dtype=torch.float64, device=self.device)
        with _peer_errors():
            distributed.all_reduce(sums)
        return [float(value) for value in sums.tolist()]

    def sum_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        """Add up the gradients over the ranks, in buckets that are the same at every step of every run."""
        if self.count == 1:
            return
        for bucket in _buckets(parameters):
            gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in bucket]
            flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
            with _peer_errors():
                distributed.all_reduce(flat)
            pieces = torch.split(flat, [gradient.numel() for gradient in gradients])
            for parameter, piece in zip(bucket, pieces, strict=True):
                parameter.grad = piece.view_as(parameter)

    def agree(self, value: Any) -> Any:
        """Rank 0's value, on every rank."""
        if self.count == 1:
            return value
        box = [value]
        with _peer_errors():
            distributed.broadcast_object_list(box, src=0)
        return box[0]

    def copy_from_main(self, module: nn.Module) -> None:
        """Give every rank the parameters and buffers of rank 0."""
        if self.count > 1:
            for tensor in module.state_dict().values():
                with _peer_errors():
                    distributed.broadcast(tensor, src=0)


def is_main() -> bool:
    """Whether this process writes and speaks; known before the ranks have met."""
    return int(os.environ.get("RANK", "0")) == 0


def num_ranks() -> int:
    """As many as torchrun started, whether they have joined or not."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def these_ranks() -> Ranks:
    """The ranks of the run that is under way, for an objective's forward()."""
    if not distributed.is_initialized():
        return Ranks(0, 1, torch.device("cpu"))
    device = torch.device("cuda" if distributed.get_backend() == "nccl" else "cpu")
    return Ranks(distributed.get_rank(), distributed.get_world_size(), device)


@contextlib.contextmanager
def joined(peer_timeout: float) -> Iterator[Ranks]:
    """Meet the other ranks, if torchrun started any, and part from them in good order."""
    count, rank = num_ranks(), int(os.environ.get("RANK", "0"))
    device = this_device()
    if count == 1:
        yield Ranks(0, 1, device)
        return
    backend = "nccl" if device.type == "cuda" else "gloo"
    distributed.init_process_group(backend, timeout=_COLLECTIVE_TIMEOUT)
    with Watchdog(rank, count, peer_timeout) as watchdog:
        try:
            yield Ranks(rank, count, device)
        except RunInterruptedError:
            _part(watchdog)
            raise
        _part(watchdog)


def _part(watchdog: Watchdog) -> None:
    """Wait until rank 0 has written everything, then let go of each other."""
    with _peer_errors():
        distributed.barrier()
    watchdog.close()
    distributed.destroy_process_group()


def this_device() -> torch.device:
    """Where this process computes: its GPU if there is one."""
    if not torch.cuda.is_available():
        return torch.device("cpu")
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
    torch.cuda.set_device(device)
    return device


@contextlib.contextmanager
def _peer_errors() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        # gloo puts its own source file before the reason, and advice behind it.
        reason = str(error).splitlines()[0].split("] ", 1)[-1].split(". ")[0]
        raise TrainingError(f"another rank was lost ({reason}); run the same command again to resume") from error


def _buckets(parameters: Sequence[nn.Parameter]) -> Iterator[list[nn.Parameter]]:
    bucket: list[nn.Parameter] = []
    size = 0
    for parameter in parameters:
        if bucket and size + parameter.numel() > _BUCKET:
            yield bucket
            bucket, size = [], 0
        bucket.append(parameter)
        size += parameter.numel()
    if bucket:
        yield bucket
