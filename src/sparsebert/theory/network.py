"""The construction as torch modules in float64, its attention through `attend` with the diagonal left out.

Hardmax is the limit of a growing score scale (temperature 1/scale). In units of delta two different scores differ by at
least 1/2, so that at HARD the other weights underflow to exactly 0 and softmax *is* hardmax. Step 3 of the proof is
the same network at a finite scale and with ramps, which four ReLUs can draw, in place of jumps.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from sparsebert.attention import attend
from sparsebert.errors import TheoryError
from sparsebert.patterns import Pattern, full
from sparsebert.theory.grid import Grid
from sparsebert.theory.token_layers import Line, ThreePieces, TokenLayer, quantiser

HARD = 2000.0  # score scale at which exp(-scale/2) is 0 in float64
LARGEST_INTEGER = 2**53  # float64 tells all integers apart below it


@dataclass(frozen=True)
class Sharpness:
    """How close the network is to hardmax and jumps."""

    scale: float = HARD  # of the scores, in units of 1/delta²: the inverse temperature
    ramp: float = 0.0  # width of what replaces a jump, in units of delta; 0 keeps the jump


EXACT = Sharpness()


def check_range(grid: Grid) -> None:
    """Refuse a grid whose contexts float64 cannot tell apart."""
    if grid.context_bound > LARGEST_INTEGER:
        raise TheoryError(
            f"contexts of {grid.tokens} tokens at {grid.num_levels} levels reach {grid.context_bound:.2e}, beyond "
            "2^53 = 9e15 where float64 stops telling integers apart; lower the resolution or use the exact construction"
        )


class Shift(nn.Module):
    """One attention layer of the construction: heads of size one that read levels and write along the first axis."""

    direction: Tensor
    thresholds: Tensor
    gains: Tensor

    def __init__(
        self, grid: Grid, pattern: Pattern, thresholds: Sequence[float], gains: Sequence[float], scale: float
    ) -> None:
        super().__init__()
        self.pattern, self.scale = pattern, scale
        self.register_buffer("direction", torch.tensor(grid.direction, dtype=torch.float64))
        self.register_buffer("thresholds", torch.tensor(thresholds, dtype=torch.float64))
        self.register_buffer("gains", torch.tensor(gains, dtype=torch.float64))

    def forward(self, rows: Float[Tensor, "batch n d"]) -> Float[Tensor, "batch n d"]:
        levels = (rows @ self.direction)[:, None, :, None]
        query = levels - self.thresholds[:, None, None]
        value = levels.expand_as(query)
        heads = attend(query, value, value, pattern=self.pattern, scale=self.scale, backend="reference")
        amount = torch.einsum("bhn,h->bn", heads[..., 0], self.gains)
        return torch.cat([rows[..., :1] + amount[..., None], rows[..., 1:]], dim=-1)


def attention_layers(grid: Grid, pattern: Pattern | None = None, scale: float = HARD) -> nn.Sequential:
    """g_c: a selective shift of two heads for each level, then two global shifts of one head."""
    pattern = full(length=grid.tokens).without_diagonal() if pattern is None else pattern
    local, wide = float(grid.local_gain), float(grid.global_gain)
    selective = [
        Shift(grid, pattern, [level - 0.5, level + 0.5], [local, -local], scale) for level in range(grid.num_levels)
    ]
    return nn.Sequential(*selective, *(Shift(grid, pattern, [0.0], [wide], scale) for _ in range(2)))


class TokenPieces(nn.Module):
    """A token-wise layer of three pieces; a ramp, if any, takes the last stretch before a jump."""

    read: Tensor
    whole: Tensor
    rest: Tensor

    def __init__(self, layer: TokenLayer, ramp: float = 0.0) -> None:
        super().__init__()
        self.pieces, self.ramp = layer.pieces, ramp
        # A value layer takes a context of 1e15 away and leaves a value near 1: whole numbers and rest are kept apart,
        # since their sum would lose the value.
        whole = [round(step) for step in layer.write]
        rest = [float(step - part) for step, part in zip(layer.write, whole, strict=True)]
        self.register_buffer("read", torch.tensor([float(x) for x in layer.read], dtype=torch.float64))
        self.register_buffer("whole", torch.tensor(whole, dtype=torch.float64))
        self.register_buffer("rest", torch.tensor(rest, dtype=torch.float64))

    def forward(self, rows: Float[Tensor, "batch n d"]) -> Float[Tensor, "batch n d"]:
        amount = bent(rows @ self.read, self.pieces, self.ramp)[..., None]
        return (rows + amount * self.whole) + amount * self.rest


def bent(values: Float[Tensor, "..."], pieces: ThreePieces, ramp: float) -> Float[Tensor, "..."]:
    """The function of three pieces, with its jumps drawn out to ramps.

    With a ramp this is a sum of at most four ReLUs (Step 3), evaluated piece by piece: the sum itself would cancel
    numbers of the size of the contexts.
    """
    low, high = float(pieces.low), float(pieces.high)
    below, between, above = (
        slope * values + constant
        for slope, constant in ((float(a), float(b)) for a, b in (pieces.below, pieces.between, pieces.above))
    )
    result = torch.where(values < low, below, torch.where(values < high, between, above))
    for corner, before, after in ((low, pieces.below, pieces.between), (high, pieces.between, pieces.above)):
        if ramp:
            start = corner - ramp
            left, right = _at(before, start), _at(after, corner)
            sloped = left + (values - start) * ((right - left) / ramp)
            result = torch.where((values >= start) & (values < corner), sloped, result)
    return result


def _at(line: Line, place: float) -> float:
    return float(line[0]) * place + float(line[1])


class Approximator(nn.Module):
    """g = g_v ∘ g_c ∘ g_q on inputs in [0, 1]^(n x d), in their own units."""

    def __init__(
        self,
        grid: Grid,
        values: Sequence[TokenLayer],
        sharpness: Sharpness = EXACT,
        pattern: Pattern | None = None,
    ) -> None:
        super().__init__()
        check_range(grid)
        self.grid = grid
        self.quantise = nn.Sequential(*(TokenPieces(layer, sharpness.ramp) for layer in quantiser(grid)))
        self.mix = attention_layers(grid, pattern, sharpness.scale)
        self.value = nn.Sequential(*(TokenPieces(layer, sharpness.ramp) for layer in values))

    def rows(self, inputs: Float[Tensor, "batch n d"]) -> Float[Tensor, "batch n d"]:
        """Quantised rows in units of delta; positions are added first, as in any Transformer."""
        marks = torch.zeros(self.grid.tokens, self.grid.width, dtype=torch.float64)
        marks[:, -1] = torch.tensor([self.grid.mark(position) for position in range(self.grid.tokens)])
        return torch.as_tensor(self.quantise(inputs.to(torch.float64) * self.grid.resolution + marks))

    def forward(self, inputs: Float[Tensor, "batch n d"]) -> Float[Tensor, "batch n d"]:
        return torch.as_tensor(self.value(self.mix(self.rows(inputs))))
