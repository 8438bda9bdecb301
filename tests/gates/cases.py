"""Gates to try things with."""

import torch

from sparsebert import gates
from sparsebert.gates import Gate

KINDS = [gates.Structured, gates.Unstructured, gates.Soft]


def trained(kind: type[Gate], length: int = 12, heads: int = 3, seed: int = 0, **arguments: object) -> Gate:
    """A gate with some alphas, as if it had learned."""
    gate = kind(length=length, heads=heads, **arguments)  # type: ignore[call-arg, arg-type]
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in gate.parameters():
            parameter += torch.randn(parameter.shape, generator=generator)
    return gate
