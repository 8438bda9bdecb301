"""Which weights these are, from a few numbers of each: enough to tell any two steps of a training apart."""

import hashlib

from torch import nn

_NUMBERS = 256  # of each weight


def short_fingerprint(model: nn.Module) -> str:
    digest = hashlib.sha256()
    for name, weight in model.named_parameters():
        some = weight.detach().flatten()[:_NUMBERS].double().cpu()
        digest.update(name.encode() + some.numpy().tobytes())
    return digest.hexdigest()
