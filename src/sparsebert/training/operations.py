"""Floating-point operations: of training, counted from the shapes of its matrices, and of this machine in a second."""

import time
from typing import Any

_PREDICTED = 0.15  # share of the tokens that are predicted
_TRAINING_PASSES = 3  # the backward pass costs twice the forward pass
_SIZE, _PRODUCTS = 1024, 20  # of the matrices that are multiplied to measure a machine


def flops_per_token(shape: dict[str, Any], vocab_size: int, length: int, density: float = 1.0) -> float:
    """Operations of one training step for each token of a batch; a multiply-add counts as two.

    A layer's products cost 2 (4 d² + 2 d f), its attention 4 n d density, for width d, inner width f and length n;
    the head costs 2 (d² + d v) at each predicted position, for v words. Norms, activations and the optimiser, which
    together stay small beside the products, are left out. density: share of the attention entries that is computed.
    """
    width, inner = int(shape["hidden_size"]), int(shape["intermediate_size"])
    layer = 2 * (4 * width**2 + 2 * width * inner) + 4 * length * width * density
    head = _PREDICTED * 2 * (width**2 + width * vocab_size)
    return _TRAINING_PASSES * (int(shape["num_hidden_layers"]) * layer + head)


def product_speed(threads: int) -> float:
    """Operations a second of matrix products, an upper bound for training.

    In processor time, since others may be using the machine.
    """
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        left, right = torch.randn(_SIZE, _SIZE), torch.randn(_SIZE, _SIZE)
        left @ right
        started = time.process_time()
        for _ in range(_PRODUCTS):
            left @ right
        return _PRODUCTS * 2 * _SIZE**3 * threads / (time.process_time() - started)
    finally:
        torch.set_num_threads(before)
