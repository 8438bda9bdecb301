"""Rows and layers as hypothesis draws them, and what float64 says they give."""

from dataclasses import dataclass

import torch
from hypothesis import strategies as st
from torch import Tensor, nn

from sparsebert.layers import Codes, Int8Linear, Norm
from sparsebert.layers.int8_library import best_linear_isa

ISAS = list(range(best_linear_isa() + 1))  # all that this processor can run
STEPS = 254  # of a row's codes
GELU_ERROR = 2.5e-4


@dataclass(frozen=True)
class Case:
    """One call."""

    rows: int
    inputs: int
    outputs: int
    activation: str | None
    residual: bool
    norm: bool
    gap: int  # numbers between one row and the next
    size: float  # of the numbers
    seed: int

    def generator(self) -> torch.Generator:
        return torch.Generator().manual_seed(self.seed)

    def layer(self) -> Int8Linear:
        layer = nn.Linear(self.inputs, self.outputs)
        with torch.no_grad():
            layer.weight.copy_(torch.randn(layer.weight.shape, generator=self.generator()))
            layer.bias.copy_(torch.randn(layer.bias.shape, generator=self.generator()))
        return Int8Linear.of(layer)

    def values(self) -> Tensor:
        wide = torch.randn(self.rows, self.inputs + self.gap, generator=self.generator()) * self.size
        return wide[:, : self.inputs]

    def codes(self) -> Codes:
        drawn = torch.randint(
            0, 256, (self.rows, self.inputs + self.gap), generator=self.generator(), dtype=torch.uint8
        )
        zeros = torch.randint(0, 256, (self.rows,), generator=self.generator())
        scales = torch.rand(self.rows, generator=self.generator()) / 100
        return Codes(drawn[:, : self.inputs], torch.stack([scales, zeros.float()], dim=1))

    def more(self) -> tuple[Tensor | None, Norm | None]:
        """Residual and norm."""
        wide = torch.randn(self.rows, self.outputs + self.gap, generator=self.generator())
        weight, bias = torch.randn(2, self.outputs, generator=self.generator())
        return wide[:, : self.outputs] if self.residual else None, Norm(weight, bias, 1e-6) if self.norm else None


@st.composite
def cases(draw: st.DrawFn) -> Case:
    sizes = st.one_of(st.integers(1, 40), st.sampled_from([64, 100, 130, 384]))
    return Case(
        draw(st.one_of(st.integers(0, 30), st.sampled_from([49, 100, 150]))),
        draw(sizes),
        draw(sizes),
        draw(st.sampled_from([None, "gelu", "relu"])),
        draw(st.booleans()),
        draw(st.booleans()),
        draw(st.sampled_from([0, 0, 1, 5])),
        draw(st.sampled_from([1.0, 1e-3, 1e4, 1e30])),
        draw(st.integers(0, 99)),
    )


def weights(layer: Int8Linear) -> Tensor:
    """The weights of a layer in float64, as it has them."""
    units, steps = layer.weight.shape[:2]
    flat = layer.weight.transpose(1, 2).reshape(units * 16, steps * 4)[: layer.out_features, : layer.in_features]
    return flat.double() * layer.scale[: layer.out_features, None].double()


def read(codes: Codes) -> Tensor:
    """What codes stand for."""
    scale, zero = codes.marks.double().unbind(1)
    return (codes.codes.double() - zero[:, None]) * scale[:, None]


def quantised(values: Tensor) -> tuple[Tensor, Tensor]:
    """Rows after a trip through codes, and the step of each row's codes."""
    values = values.double()
    low, high = values.amin(1, keepdim=True).clamp(max=0), values.amax(1, keepdim=True).clamp(min=0)
    step = (high - low) / STEPS
    zero = (-low / step).round()
    return ((values / step + zero).round() - zero) * step, step


def halfway(values: Tensor, step: Tensor) -> Tensor:
    """How many numbers of each row lie between two codes, and may fall to either; of bfloat16 there may be several."""
    places = values.double() / step
    return ((places - places.floor() - 0.5).abs() < 1e-4).sum(1, keepdim=True)


def allowed(products: Tensor, case: Case, layer: Int8Linear, residual: Tensor | None, norm: Norm | None) -> Tensor:
    """How far from finished() what follows the products may be: rounding, and GELU's polynomial where there is GELU."""
    expected = finished(products, case, layer, residual, norm)
    error = torch.full_like(expected[:, :1], GELU_ERROR if case.activation == "gelu" else 0.0)
    if norm is None or not case.rows:
        return 1e-4 * expected.abs() + 2e-5 + error
    deviation = finished(products, case, layer, residual, None).std(1, correction=0, keepdim=True)
    return 1e-4 * expected.abs() + 2e-4 + 3 * error / deviation * norm.weight.abs()


def finished(products: Tensor, case: Case, layer: Int8Linear, residual: Tensor | None, norm: Norm | None) -> Tensor:
    """What follows the products, in float64."""
    x = products + layer.bias[: layer.out_features].double()
    if case.activation is not None:
        x = getattr(nn.functional, case.activation)(x)
    if residual is not None:
        x = x + residual.double()
    if norm is not None:
        x = nn.functional.layer_norm(x, x.shape[-1:], norm.weight.double(), norm.bias.double(), norm.epsilon)
    return x
