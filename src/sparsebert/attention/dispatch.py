"""attend(): one operation, many backends. An explicit backend works or raises; only "auto" chooses."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sparsebert.attention.flex import attend_flex
from sparsebert.attention.gated import attend_gated
from sparsebert.attention.gather import attend_gather
from sparsebert.attention.inputs import (
    AttentionArguments,
    GateValues,
    Inputs,
    Relaxation,
    checked_inputs,
    is_forward_mode,
    is_transformed,
)
from sparsebert.attention.packed import attend_packed
from sparsebert.attention.reference import attend_reference
from sparsebert.attention.sdpa import attend_sdpa
from sparsebert.attention.sparse import attend_sparse, supports, takes_gate
from sparsebert.attention.sparse_crossover import crossover
from sparsebert.attention.sparse_library import is_built
from sparsebert.attention.triton import attend_triton
from sparsebert.attention.triton import obstacle as triton_obstacle
from sparsebert.errors import AttentionError
from sparsebert.patterns import Pattern

BACKENDS: dict[str, Callable[[Inputs], Tensor]] = {
    "reference": attend_reference,
    "sdpa": attend_sdpa,
    "gated": attend_gated,
    "gather": attend_gather,
    "sparse": attend_sparse,
    "flex": attend_flex,
    "triton": attend_triton,
}


@dataclass(frozen=True)
class Choice:
    """The backend that "auto" takes, and why."""

    backend: str
    reason: str


def attend(
    query: Float[Tensor, "batch heads n d"],
    key: Float[Tensor, "batch heads n d"],
    value: Float[Tensor, "batch heads n d"],
    *,
    pattern: Pattern | None = None,
    lengths: Int[Tensor, " examples"] | None = None,
    packed: bool = False,
    dropout: float = 0.0,
    scale: float | None = None,
    bias: Float[Tensor, "..."] | None = None,
    gate: Float[Tensor, "gate_heads positions positions"] | None = None,
    relaxation: Relaxation = "log",
    c: float = 10_000.0,
    backend: str = "auto",
) -> Float[Tensor, "batch heads n d"]:
    """Self-attention over the entries a pattern keeps.

    pattern: who may attend to whom; an input shorter than it uses its top-left corner, a longer one raises.
    lengths: how many tokens of each example are real; the rest is padding, whose keys are excluded and whose
        queries give zeros, as does any query with nothing to attend to.
    packed: the batch is one row without padding, one example's tokens after another's, as many each as lengths says.
    dropout: on the attention weights. scale: of the scores, 1/sqrt(d) by default.
    bias: one value per kept entry of the pattern, added to the scores; its gradient is summed over the batch.
    gate: a soft pattern in [0, 1] with a gradient, [1 or heads, n, n]. relaxation: "multiplicative" is Eq. (4) of the
        paper, "additive" its renormalisation trick, Eqs. (5)-(6), with the constant c; "log" adds log P, which is
        the multiplicative form renormalised and has no constant to choose.
    """
    under = AttentionArguments(pattern, bias, None if gate is None else GateValues(gate, relaxation, c))
    return attend_checked(checked_inputs(query, key, value, under, lengths, dropout, scale, packed), backend)


def attend_checked(inputs: Inputs, backend: str = "auto") -> Float[Tensor, "batch heads n d"]:
    """attend() of inputs that were checked."""
    name = _pick(inputs)[0] if backend == "auto" else backend
    if name not in BACKENDS:
        raise AttentionError(f"there is no backend {name!r}; expected one of auto, {', '.join(BACKENDS)}")
    if inputs.packed and name != "sparse":
        return attend_packed(BACKENDS[name], inputs)
    return BACKENDS[name](inputs)


def choose(inputs: Inputs) -> Choice:
    """What "auto" takes for these inputs."""
    backend, reason = _pick(inputs)
    if inputs.pattern is None:
        return Choice(backend, reason)
    return Choice(backend, reason.format(density=inputs.pattern.density, limit=crossover(inputs.length)))


def _pick(inputs: Inputs) -> tuple[str, str]:
    """The backend, and why, with places for the density and the limit that it was held against."""
    if is_forward_mode(inputs):
        return "reference", "a forward-mode derivative is taken, which only the definition itself has"
    if inputs.gate is not None and is_transformed():
        return "reference", "a gate inside a transform of torch.func, which only the definition itself goes through"
    fast = is_built() and supports(inputs.query)
    if inputs.gate is not None and fast and takes_gate(inputs):
        return "sparse", "a gate is learned, as a bias of every entry, with the C++ kernel that takes its gradient"
    if inputs.gate is not None:
        return "gated", "a gate is learned, which needs its gradient"
    if inputs.query.is_cuda:
        return _pick_on_gpu(inputs)
    if inputs.pattern is None:
        return "sdpa", "no pattern: everyone attends to everyone"
    if inputs.bias is not None:
        if fast:
            return "sparse", "a bias per kept entry, with the C++ kernel that takes its gradient"
        return "reference", "a bias per kept entry has no faster backend here"
    # A graph for many lengths decides by the longest of them.
    length = inputs.pattern.length if torch.compiler.is_compiling() else inputs.length
    if fast and inputs.pattern.density < crossover(length):
        return "sparse", "density {density:.3f} is below {limit:.2f}, where dense becomes faster at this length"
    if fast:
        return "sdpa", "density {density:.3f} is not below {limit:.2f}, where dense becomes faster"
    return "sdpa", "the dense kernel, with the pattern as a bool tensor: the C++ kernel does not serve this input"


def _pick_on_gpu(inputs: Inputs) -> tuple[str, str]:
    obstacle = triton_obstacle(inputs.query)
    if inputs.bias is None and inputs.keeps_everything:
        return "sdpa", "nothing is excluded: everyone attends to everyone"
    if is_transformed():
        obstacle = "a transform of torch.func is at work"
    if obstacle is None:
        return "triton", "on a GPU the Triton kernels cost what the pattern keeps"
    if inputs.bias is None:
        return "sdpa", f"the dense kernel, with the pattern as a bool tensor: {obstacle}"
    return "reference", f"a bias per kept entry has no faster backend here: {obstacle}"
