"""What attend() is handed and cannot use is refused in a sentence, whatever the backend."""

from typing import Any

import numpy as np
import pytest
import torch

from sparsebert import attend, patterns
from sparsebert.errors import AttentionError
from sparsebert.patterns import Anchor

QUERY = torch.zeros(1, 2, 8, 4)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"query": QUERY.numpy()}, "query is a ndarray"),
        ({"key": QUERY.tolist()}, "key is a list"),
        ({"value": None}, "value is a NoneType"),
        ({"lengths": [3]}, "lengths is a list"),
        ({"lengths": np.array([3])}, "lengths is a ndarray"),
        ({"bias": 0.5}, "bias is a float"),
        ({"key": QUERY.to("meta")}, "key is on meta but query is on cpu"),
        ({"value": QUERY.to("meta")}, "value is on meta"),
        ({"lengths": torch.tensor([3], device="meta")}, "lengths is on meta"),
        ({"query": QUERY[..., :0], "key": QUERY[..., :0], "value": QUERY[..., :0]}, "head size above 0"),
        ({"key": QUERY.double()}, "needs the same of all three"),
        ({"query": QUERY.long(), "key": QUERY.long(), "value": QUERY.long()}, "floating-point"),
        ({"gate": torch.ones(1, 8, 8, device="meta"), "pattern": None}, "gate is on meta"),
    ],
)
@pytest.mark.parametrize("backend", ["auto", "reference", "sdpa", "sparse"])
def test_what_has_no_meaning_is_refused(change: dict[str, Any], words: str, backend: str) -> None:
    arguments = {"query": QUERY, "key": QUERY, "value": QUERY, "pattern": patterns.window(8)} | change
    with pytest.raises(AttentionError, match=words):
        attend(**arguments, backend=backend)


@pytest.mark.parametrize("shape", [(0, 2, 5, 4), (2, 2, 0, 4)])
@pytest.mark.parametrize("anchor", ["position", "token"])
@pytest.mark.parametrize("backend", ["auto", "reference", "sdpa", "sparse", "gated"])
def test_no_examples_and_no_tokens_give_nothing(shape: tuple[int, ...], anchor: Anchor, backend: str) -> None:
    query = torch.zeros(shape, requires_grad=True)
    gate = {"gate": torch.ones(1, 8, 8, requires_grad=True)} if backend == "gated" else {}
    output = attend(query, query, query, pattern=patterns.window(8).anchored(anchor), backend=backend, **gate)
    output.sum().backward()
    assert output.shape == shape
    assert query.grad is not None
