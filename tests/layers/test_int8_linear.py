"""Int8Linear in the place of an nn.Linear."""

import copy
import pickle

import pytest
import torch
from torch import nn

from sparsebert.errors import LayerError
from sparsebert.layers import Int8Linear, joined


def test_a_layer_gives_nearly_what_it_gave_in_float32() -> None:
    torch.manual_seed(0)
    layer, x = nn.Linear(384, 200), torch.randn(2, 5, 384)
    with torch.no_grad():
        expected, found = layer(x), Int8Linear.of(layer)(x)
    assert found.shape == (2, 5, 200)
    assert float((found - expected).norm() / expected.norm()) < 0.015


def test_a_layer_without_bias_has_none() -> None:
    layer = nn.Linear(8, 4, bias=False)
    assert Int8Linear.of(layer)(torch.zeros(3, 8)).abs().max() == 0


def test_outputs_without_weights_are_their_bias() -> None:
    layer = nn.Linear(8, 4)
    nn.init.zeros_(layer.weight)
    assert torch.equal(Int8Linear.of(layer)(torch.ones(1, 8))[0], layer.bias.detach())


def test_joined_layers_give_their_outputs_side_by_side() -> None:
    parts = [nn.Linear(6, 3), nn.Linear(6, 5)]
    x = torch.randn(2, 6)
    assert torch.allclose(joined(parts)(x), torch.cat([part(x) for part in parts], -1), atol=1e-6)


def test_copies_run_on_weights_of_their_own() -> None:
    layer, x = Int8Linear.of(nn.Linear(9, 7)), torch.randn(4, 9)
    expected = layer(x)
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert torch.equal(other(x), expected)
        other.bias.add_(1.0)
        assert not torch.equal(other(x), expected)
        assert torch.equal(layer(x), expected)


def test_a_buffer_with_other_memory_is_noticed() -> None:
    layer, x = Int8Linear.of(nn.Linear(9, 7)), torch.randn(4, 9)
    before = layer(x)
    layer.bias = layer.bias + 1.0
    assert torch.allclose(layer(x), before + 1.0, atol=1e-5)
    with pytest.raises(LayerError, match="bfloat16"):
        layer.to(torch.bfloat16)(x)


def test_a_gradient_is_refused() -> None:
    with pytest.raises(LayerError, match="no gradient"):
        Int8Linear.of(nn.Linear(3, 3))(torch.randn(1, 3, requires_grad=True))


def test_weights_that_cannot_be_int8_are_refused() -> None:
    layer = nn.Linear(3, 3)
    layer.weight.data[0, 0] = float("nan")
    with pytest.raises(LayerError, match="not finite"):
        Int8Linear.of(layer)
    with pytest.raises(LayerError, match="40,000 inputs"):
        Int8Linear(40_000, 3)
