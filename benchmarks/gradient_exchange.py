"""Are gradients summed over ranks the same bits each time? torch's DDP beside the sums of sparsebert.training.

Every rank makes the same backward pass three times over, so any difference comes from the exchange. A run that is
resumed begins with a first pass again, where the undisturbed run is at its thousandth.

python benchmarks/gradient_exchange.py
"""

import os
import socket
import sys
from collections.abc import Callable

import torch
from torch import Tensor, distributed, nn
from torch.nn.parallel import DistributedDataParallel

from sparsebert.training.launch import Ranks

WIDTH, LAYERS, ROWS, PASSES = 300, 6, 16, 3


def gradients(net: nn.Module, run: nn.Module, inputs: Tensor, after: Callable[[], None]) -> Tensor:
    net.zero_grad()
    run(inputs).pow(2).sum().backward()
    after()
    return torch.cat([parameter.grad.flatten() for parameter in net.parameters()])


def compare(rank: int, count: int) -> None:
    distributed.init_process_group("gloo")
    for name in ("DDP", "own sum"):
        torch.manual_seed(0)
        net = nn.Sequential(*[nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)])
        wrapped = DistributedDataParallel(net) if name == "DDP" else net
        ranks, parameters = Ranks(rank, count, torch.device("cpu")), list(net.parameters())
        after = (lambda: None) if name == "DDP" else (lambda r=ranks, p=parameters: r.sum_gradients(p))
        torch.manual_seed(rank + 1)
        inputs = torch.randn(ROWS, WIDTH)
        passes = [gradients(net, wrapped, inputs, after).clone() for _ in range(PASSES)]
        if rank == 0:
            changed = [int((one != passes[0]).sum()) for one in passes[1:]]
            print(f"{count} ranks, {name:7}: {changed} of {len(passes[0]):,} values differ from the first pass")
    sys.stdout.flush()
    distributed.barrier()


def main() -> None:
    torch.set_num_threads(1)
    for count in (2, 3, 4):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        children = []
        for rank in range(count):
            child = os.fork()
            if child == 0:
                names = {"RANK": rank, "WORLD_SIZE": count, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
                os.environ.update({name: str(value) for name, value in names.items()})
                compare(rank, count)
                os._exit(0)
            children.append(child)
        for child in children:
            os.waitpid(child, 0)


if __name__ == "__main__":
    main()
