"""Soft attention under a gate, forward and backward written out, for learning a pattern at short lengths.

    log             A = P exp(S) / Z, Z = sum P exp(S)   dP = exp(S)/Z * (dA - r)   dS = P dP
    additive        A = softmax(S - c (1 - P))           dP = c dS                  dS = A (dA - r)    Eqs. (5), (6)
    multiplicative  A = P softmax(S)                     dP = softmax(S) dA         dS = softmax(S) (P dA - r)   Eq. (4)

with r = <dA, A> = <dO, O> in each row. Writing the gradient out has a purpose: in the log form an entry with P = 0
still learns what it would bring if it came back, which log P through autograd (minus infinity, times zero) cannot
tell it. Steps work in place where they can: at n = 128 the cost is the number of passes over [batch, heads, n, n].
"""

from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from sparsebert.attention.inputs import Inputs, Relaxation, is_forward_mode, is_transformed
from sparsebert.errors import AttentionError

# exp(score)/Z of an entry that is off may be huge when every kept score is low; this bounds its gradient.
_HIGHEST_EXPONENT = 20.0
# Below this share of a row's softmax the kept entries may have lost their digits; such rows take the careful path.
_SMALLEST_SHARE = 1e-20


def attend_gated(inputs: Inputs) -> Float[Tensor, "batch heads n d"]:
    if inputs.gate is None:
        raise AttentionError("backend 'gated' needs a gate; pass gate=..., or choose another backend")
    if is_transformed() or is_forward_mode(inputs):
        raise AttentionError("backend 'gated' has plain reverse-mode gradients only; use backend='reference'")
    padded = inputs.padded()
    # A gate is learned by differences that half precision would round away, so the arithmetic is the gate's.
    arithmetic = torch.promote_types(inputs.query.dtype, inputs.gate.values.dtype)
    with torch.autocast(inputs.query.device.type, enabled=False):
        output: Tensor = _GatedAttention.apply(  # type: ignore[no-untyped-call]
            inputs.query.to(arithmetic),
            inputs.key.to(arithmetic),
            inputs.value.to(arithmetic),
            _selected(inputs.gate.values, inputs),
            _excluded(inputs, padded),
            inputs.dropout,
            inputs.scale,
            inputs.gate.relaxation,
            inputs.gate.c,
        )
    output = output.to(inputs.query.dtype)
    return output if padded is None else output.masked_fill(padded[:, None, :, None], 0.0)


class _GatedAttention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        gate: Tensor,
        excluded: Tensor | None,
        dropout: float,
        scale: float,
        relaxation: Relaxation,
        c: float,
    ) -> Tensor:
        scores = (query * scale) @ key.transpose(-1, -2)
        if relaxation == "additive":
            scores -= c * (1 - gate)
        if excluded is not None:
            scores.masked_fill_(excluded, -torch.inf)
        base, weights = _softmax_with_gate(scores, gate, relaxation)
        dropped, kept = (weights, None) if dropout == 0 else torch.native_dropout(weights, dropout, True)
        output = dropped @ value
        ctx.save_for_backward(query, key, value, gate, base, dropped, kept, output)
        ctx.settings = (dropout, scale, relaxation, c)
        return output

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        # Whoever calls backward() may do so under autocast too.
        with torch.autocast(grad_output.device.type, enabled=False):
            return (*_gradients(ctx, grad_output), None, None, None, None, None)


def _gradients(ctx: Any, grad_output: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Of query, key, value and gate."""
    query, key, value, gate, base, dropped, kept, output = ctx.saved_tensors
    dropout, scale, relaxation, c = ctx.settings
    grad_value = dropped.transpose(-1, -2) @ grad_output
    grad_weights = grad_output @ value.transpose(-1, -2)
    if kept is not None:
        grad_weights.mul_(kept).mul_(1 / (1 - dropout))
    mean = (grad_output * output).sum(-1, keepdim=True)
    grad_scores, grad_gate = _softmax_backward(grad_weights, mean, base, gate, relaxation, c)
    grad_query = (grad_scores @ key) * scale
    grad_key = (grad_scores.transpose(-1, -2) @ query) * scale
    return grad_query, grad_key, grad_value, grad_gate


def _softmax_with_gate(scores: Tensor, gate: Tensor, relaxation: Relaxation) -> tuple[Tensor, Tensor]:
    """What the backward pass needs (softmax(S), or exp(S)/Z in the log form), and the weights; scores are consumed."""
    plain = torch.softmax(scores, dim=-1)
    if not torch.isfinite(plain.sum()):
        plain.nan_to_num_(nan=0.0)  # NaN only where a whole row is excluded
    if relaxation == "additive" or not scores.numel():
        return plain, plain
    weights = plain * gate
    if relaxation == "multiplicative":
        return plain, weights
    share = weights.sum(-1, keepdim=True)
    if bool(((share < _SMALLEST_SHARE) & (plain.amax(-1, keepdim=True) > 0)).any()):
        base = _careful_base(scores, gate)
        return base, base * gate
    inverse = torch.where(share > 0, 1 / share, torch.zeros_like(share))
    return plain.mul_(inverse), weights.mul_(inverse)


def _careful_base(scores: Tensor, gate: Tensor) -> Tensor:
    """exp(S)/Z for rows whose kept scores lie far below others; zero where nothing is kept."""
    total = torch.logsumexp(scores + gate.log(), dim=-1, keepdim=True)
    exponent = (scores - total).nan_to_num_(nan=-torch.inf, posinf=-torch.inf, neginf=-torch.inf)
    return exponent.clamp_(max=_HIGHEST_EXPONENT).exp_()


def _softmax_backward(
    grad_weights: Tensor, mean: Tensor, base: Tensor, gate: Tensor, relaxation: Relaxation, c: float
) -> tuple[Tensor, Tensor]:
    """Gradients of the scores and of the gate; grad_weights is consumed."""
    if relaxation == "multiplicative":
        grad_gate = _reduced(grad_weights * base, gate)
        return grad_weights.mul_(gate).sub_(mean).mul_(base), grad_gate
    grad_weights.sub_(mean).mul_(base)
    grad_gate = _reduced(grad_weights, gate)
    if relaxation == "additive":
        return grad_weights, c * grad_gate
    return grad_weights.mul_(gate), grad_gate


def _reduced(grad: Tensor, gate: Tensor) -> Tensor:
    """Summed over the dimensions along which the gate was spread."""
    spread = [d for d in range(4) if gate.shape[d] == 1 and grad.shape[d] != 1]
    return grad.sum(spread, keepdim=True) if spread else grad.clone()


def _selected(values: Tensor, inputs: Inputs) -> Float[Tensor, "batch_or_1 heads_or_1 n n"]:
    n = inputs.length
    if not inputs.anchored_to_token or (inputs.lengths is None and n == values.shape[-1]):
        return values[None, :, :n, :n]
    return inputs.anchored(values)


def _excluded(inputs: Inputs, padded: Bool[Tensor, "batch n"] | None) -> Bool[Tensor, "..."] | None:
    """Outside the pattern, or key padded; None where nothing is."""
    keys = None if padded is None else padded[:, None, None, :]
    if inputs.pattern is None or inputs.keeps_everything:
        return keys
    outside = ~_selected(inputs.pattern.keep().to(inputs.query.device), inputs)
    return outside if keys is None else outside | keys
