"""The approximator end to end: for a continuous f, build g, and measure d_p(f, g) against delta and temperature."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations
from math import log, pi
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from sparsebert import draws
from sparsebert.theory.cases import case
from sparsebert.theory.grid import Grid
from sparsebert.theory.network import EXACT, Approximator, Sharpness
from sparsebert.theory.statements import repeated
from sparsebert.theory.token_layers import TokenLayer, value_map

Function = Callable[[Float[Tensor, "batch n d"]], Float[Tensor, "batch n d"]]


@dataclass(frozen=True)
class Target:
    """A function to approximate, with what bounds the error of a piecewise constant g."""

    name: str
    function: Function
    modulus: float  # |f(X) - f(Y)| of any entry is at most modulus * delta where |X - Y| <= delta everywhere
    largest: float  # bounds |f| of any entry
    equivariant: bool  # reordering the tokens only reorders the output


def _linear(inputs: Tensor) -> Tensor:
    return (inputs + inputs.mean(dim=1, keepdim=True)) / 2


def _sinusoidal(inputs: Tensor) -> Tensor:
    return torch.sin(pi * (inputs + inputs.mean(dim=1, keepdim=True)))


def _first_times_last(inputs: Tensor) -> Tensor:
    return (inputs[:, :1] * inputs[:, -1:]).expand_as(inputs)


LINEAR = Target("linear", _linear, modulus=1.0, largest=1.0, equivariant=True)
SINUSOIDAL = Target("sinusoidal", _sinusoidal, modulus=2 * pi, largest=1.0, equivariant=True)
FIRST_TIMES_LAST = Target("first times last", _first_times_last, modulus=2.0, largest=1.0, equivariant=False)
TARGETS = (LINEAR, SINUSOIDAL, FIRST_TIMES_LAST)


def symmetrised(function: Function) -> Function:
    """The nearest equivariant function (in d_2): the mean over all orders, each undone on the output."""

    def mean(inputs: Tensor) -> Tensor:
        orders = [list(order) for order in permutations(range(inputs.shape[1]))]
        total = torch.zeros_like(inputs)
        for order in orders:
            total[:, order] += function(inputs[:, order])
        return total / len(orders)

    return mean


def approximator(function: Function, grid: Grid, sharpness: Sharpness = EXACT) -> Approximator:
    """g for this function: each context is sent to f at the corner of its input's cell.

    On a grid without marks an input is known up to the order of its tokens, so f is symmetrised first.
    """
    function = function if grid.marked else symmetrised(function)
    return Approximator(grid, _value_layers(function, grid), sharpness)


def _value_layers(function: Function, grid: Grid) -> list[TokenLayer]:
    inputs = case(grid, limit=2**22, samples=0, seed=0)
    rows = [[grid.row(level, i) for i, level in enumerate(inputs.tokens(k))] for k in range(len(inputs.levels))]
    corners = torch.tensor([[[float(x) for x in row] for row in rows_] for rows_ in rows], dtype=torch.float64)
    corners[:, :, -1] -= torch.tensor([grid.mark(position) for position in range(grid.tokens)])
    wanted = function(corners / grid.resolution).tolist()
    outputs: dict[int, tuple[Sequence[Any], Sequence[Any]]] = {}
    for k, input_rows in enumerate(rows):
        for token, row in enumerate(input_rows):
            context = inputs.context(k, token)
            carrier = [row[0] + context - int(inputs.levels[k, token]), *row[1:]]
            outputs[context] = (carrier, [Fraction(value) for value in wanted[k][token]])
    reach = max(abs(sum(w * u for w, u in zip(want, grid.direction, strict=True))) for _, want in outputs.values())
    return value_map(dict(sorted(outputs.items())), grid, reach + 1)


# Integration


def cell_corners(grid: Grid) -> Float[Tensor, "cells n d"]:
    """The lower corner of every cell of [0, 1]^(n x d)."""
    axes = np.indices((grid.resolution,) * (grid.tokens * grid.width)).reshape(grid.tokens * grid.width, -1).T
    return torch.from_numpy(axes.reshape(-1, grid.tokens, grid.width) / grid.resolution)


def distances(function: Function, network: Approximator, powers: Sequence[float], points: int) -> list[float]:
    """d_p(f, g) for each p, of a network with jumps, which is constant on cells: Gauss-Legendre in every cell."""
    grid = network.grid
    corners = cell_corners(grid)
    constant = network(corners + 0.5 / grid.resolution)
    nodes, weights = np.polynomial.legendre.leggauss(points)
    totals = [0.0 for _ in powers]
    for place in np.ndindex(*(points,) * (grid.tokens * grid.width)):
        offset = torch.tensor([(nodes[k] + 1) / 2 / grid.resolution for k in place]).view(grid.tokens, grid.width)
        weight = float(np.prod([weights[k] / 2 for k in place]))
        gap = (function(corners + offset) - constant).abs()
        for index, p in enumerate(powers):
            totals[index] += weight * float(gap.pow(p).sum(dim=(1, 2)).mean())
    return [float(total ** (1 / p)) for total, p in zip(totals, powers, strict=True)]


def sampled_distance(function: Function, network: Approximator, p: float, samples: int, seed: int = 0) -> float:
    """d_p(f, g) for any network, by random points."""
    grid = network.grid
    uniform = draws.generator(seed, "theory/points").random((samples, grid.tokens, grid.width))
    inputs = torch.from_numpy(uniform)
    return float((function(inputs) - network(inputs)).abs().pow(p).sum(dim=(1, 2)).mean().pow(1 / p))


def bound(target: Target, grid: Grid, p: float) -> float:
    """What the proof promises: the modulus of f, and where rows are not marked, what repeated tokens can cost."""
    entries = grid.tokens * grid.width
    modulus = target.modulus / grid.resolution * entries ** (1 / p)
    lost = 0.0 if grid.marked else target.largest * (entries * float(repeated(grid))) ** (1 / p)
    return float(modulus + lost)


def slope(deltas: Sequence[float], errors: Sequence[float]) -> float:
    """The power of delta that the errors fall with: the least-squares line through their logarithms."""
    return float(np.polyfit([log(delta) for delta in deltas], [log(error) for error in errors], 1)[0])


# What is measured


def error_against_delta(
    target: Target,
    tokens: int,
    width: int,
    resolutions: Sequence[int],
    *,
    marked: bool,
    powers: Sequence[float] = (2.0,),
    points: int = 4,
) -> list[dict[str, Any]]:
    """For each p, d_p(f, g) of the hardmax network at each resolution, what the proof promises, and the slopes."""
    grids = [Grid(tokens, width, resolution, marked) for resolution in resolutions]
    measured = [distances(target.function, approximator(target.function, grid), powers, points) for grid in grids]
    deltas = [1 / resolution for resolution in resolutions]
    about = {"target": target.name, "tokens": tokens, "width": width, "marked": marked}
    studies = []
    for index, p in enumerate(powers):
        errors = [row[index] for row in measured]
        slopes = {"slope": slope(deltas, errors), "last_slope": slope(deltas[-2:], errors[-2:])}
        bounds = [bound(target, grid, p) for grid in grids]
        study = {**about, "p": p, "resolutions": list(resolutions), "errors": errors, "bounds": bounds, **slopes}
        studies.append(study)
    return studies


def error_against_sharpness(
    target: Target, grid: Grid, scales: Sequence[float], ramps: Sequence[float], *, p: float = 2.0, samples: int = 2000
) -> dict[str, Any]:
    """d_p(f, g) of softmax networks with ReLUs (Step 3), for each ramp over the scales; and of hardmax with jumps."""
    function = target.function
    errors = {
        ramp: [
            sampled_distance(function, approximator(function, grid, Sharpness(scale, ramp)), p, samples)
            for scale in scales
        ]
        for ramp in ramps
    }
    return {
        "target": target.name,
        "tokens": grid.tokens,
        "width": grid.width,
        "resolution": grid.resolution,
        "p": p,
        "scales": list(scales),
        "errors": {str(ramp): values for ramp, values in errors.items()},
        "hardmax": sampled_distance(function, approximator(function, grid), p, samples),
    }


def floor_without_positions(target: Target, tokens: int, width: int, p: float = 2.0, points: int = 8) -> float:
    """d_p between f and its symmetrised form: for p = 2 no network without positions comes nearer."""
    nodes, weights = np.polynomial.legendre.leggauss(points)
    grid = torch.from_numpy(np.indices((points,) * (tokens * width)).reshape(tokens * width, -1).T)
    inputs = torch.from_numpy((nodes + 1) / 2)[grid].view(-1, tokens, width)
    weight = torch.from_numpy(weights / 2)[grid].prod(dim=1)
    gap = (target.function(inputs) - symmetrised(target.function)(inputs)).abs().pow(p).sum(dim=(1, 2))
    return float((weight * gap).sum() ** (1 / p))
