"""Int8Linear: an nn.Linear whose weights are codes, a scale for each output."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from sparsebert.errors import LayerError
from sparsebert.layers.int8_kernel import Packed, addresses, linear
from sparsebert.layers.int8_library import STEP, UNIT, WIDEST

_TOP = 127  # codes of weights run from -127 to 127


class Int8Linear(nn.Module):
    """y = x weights' + bias with weights in int8, each row of x quantised by itself. For inference alone.

    The buffers lie as the kernel reads them (docs/decisions/int8-layers.md), the same on every processor.
    """

    weight: Tensor
    sums: Tensor
    scale: Tensor
    bias: Tensor

    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__()
        if not (1 <= in_features <= WIDEST and 1 <= out_features <= WIDEST):
            raise LayerError(
                f"a layer of {in_features:,} inputs and {out_features:,} outputs cannot be int8; expected 1 to "
                f"{WIDEST:,} of each"
            )
        self.in_features, self.out_features = in_features, out_features
        units, steps = -(-out_features // UNIT), -(-in_features // STEP)
        self.register_buffer("weight", torch.zeros(units, steps, UNIT, STEP, dtype=torch.int8))
        self.register_buffer("sums", torch.zeros(units * UNIT, dtype=torch.int32))
        self.register_buffer("scale", torch.zeros(units * UNIT))
        self.register_buffer("bias", torch.zeros(units * UNIT))
        self._packed: Packed | None = None

    @classmethod
    def of(cls, layer: nn.Linear) -> "Int8Linear":
        """The layer quantised: each output's weights to the nearest of 255 steps between its largest and minus that."""
        made = cls(layer.in_features, layer.out_features)
        weight = layer.weight.detach()
        if not bool(weight.isfinite().all()):
            raise LayerError("a layer has weights that are not finite and cannot be int8; load weights that are")
        scale = weight.abs().amax(1) / _TOP
        codes = (weight / scale.where(scale > 0, 1.0)[:, None]).round().to(torch.int8)
        units, steps = made.weight.shape[:2]
        filled = codes.new_zeros(units * UNIT, steps * STEP)
        filled[: made.out_features, : made.in_features] = codes
        made.weight.copy_(filled.view(units, UNIT, steps, STEP).transpose(1, 2))
        made.sums.copy_(filled.sum(1, dtype=torch.int32))
        made.scale[: made.out_features] = scale
        if layer.bias is not None:
            made.bias[: made.out_features] = layer.bias.detach()
        return made

    @property
    def packed(self) -> Packed:
        """The layer as the kernel reads it; made again where a buffer has other memory than when it was made."""
        tensors = (self.weight, self.sums, self.scale, self.bias)
        if self._packed is None or addresses(tensors) != self._packed.addresses:
            self._packed = Packed(self.in_features, self.out_features, *tensors)
        return self._packed

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_packed": None}  # addresses are of no use to a copy

    def forward(self, x: Float[Tensor, "*places inputs"]) -> Float[Tensor, "*places outputs"]:
        check_inference(x)
        values = linear(x.reshape(-1, x.shape[-1]), self.packed).values
        return values.view(*x.shape[:-1], self.out_features)

    def is_consistent(self) -> bool:
        """Whether the saved sums are those of the saved weights."""
        return torch.equal(self.weight.sum((1, 3), dtype=torch.int32).flatten(), self.sums)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}"


def check_inference(x: Tensor) -> None:
    """Refuse to run where a gradient is asked for."""
    if x.requires_grad and torch.is_grad_enabled():
        raise LayerError("int8 layers have no gradient; train the model in float32 and quantise it afterwards")


def joined(layers: Sequence[nn.Linear]) -> nn.Linear:
    """One layer whose outputs are those of several layers with the same inputs, one after another."""
    first = layers[0]
    both = nn.Linear(first.in_features, sum(each.out_features for each in layers), bias=first.bias is not None)
    with torch.no_grad():
        both.weight.copy_(torch.cat([each.weight for each in layers]))
        if both.bias is not None:
            both.bias.copy_(torch.cat([each.bias for each in layers]))
    return both
