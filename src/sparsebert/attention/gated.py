"""Soft attention under a gate, forward and backward written out, for learning a pattern at short lengths.

    log             A = P exp(S) / sum P exp(S)       dP = exp(S)/Z * (dA - <dA, A>)
    additive        A = softmax(S - c (1 - P))        dP = c * A * (dA - <dA, A>)      Eqs. (5), (6)
    multiplicative  A = P * softmax(S)                dP = softmax(S) * dA             Eq. (4)

Writing the gradient out has a purpose: in the log form an entry with P = 0 still learns what it would bring if it
came back, which log P through autograd (minus infinity, times zero) cannot tell it.
"""

from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from sparsebert.attention.inputs import Inputs, Relaxation
from sparsebert.errors import AttentionError

# exp(score - log-sum) of an entry that is off may be huge when every kept score is low; this bounds its gradient.
_HIGHEST_EXPONENT = 20.0


def attend_gated(inputs: Inputs) -> Float[Tensor, "batch heads n d"]:
    if inputs.gate is None:
        raise AttentionError("backend 'gated' needs a gate; pass gate=..., or choose another backend")
    gate = _selected(inputs.gate.values, inputs)
    excluded = _excluded(inputs)
    dropout = None
    if inputs.dropout > 0:
        ones = torch.ones(
            (*inputs.query.shape[:3], inputs.length), dtype=inputs.query.dtype, device=inputs.query.device
        )
        dropout = torch.nn.functional.dropout(ones, inputs.dropout)
    output: Tensor = _GatedAttention.apply(  # type: ignore[no-untyped-call]
        inputs.query,
        inputs.key,
        inputs.value,
        gate,
        excluded,
        dropout,
        inputs.scale,
        inputs.gate.relaxation,
        inputs.gate.c,
    )
    return output


class _GatedAttention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        gate: Tensor,
        excluded: Tensor | None,
        dropout: Tensor | None,
        scale: float,
        relaxation: Relaxation,
        c: float,
    ) -> Tensor:
        scores = (query * scale) @ key.transpose(-1, -2)
        if excluded is not None:
            scores.masked_fill_(excluded, -torch.inf)
        base = _softmax_with_gate(scores, gate, relaxation, c)
        weights = base if relaxation == "additive" else base * gate
        dropped = weights if dropout is None else weights * dropout
        ctx.save_for_backward(query, key, value, gate, base, dropout)
        ctx.settings = (scale, relaxation, c)
        return dropped @ value

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value, gate, base, dropout = ctx.saved_tensors
        scale, relaxation, c = ctx.settings
        weights = base if relaxation == "additive" else base * gate
        dropped = weights if dropout is None else weights * dropout
        grad_value = dropped.transpose(-1, -2) @ grad_output
        grad_weights = grad_output @ value.transpose(-1, -2)
        if dropout is not None:
            grad_weights *= dropout
        grad_scores, grad_gate = _softmax_backward(grad_weights, weights, base, gate, relaxation, c)
        grad_query = (grad_scores @ key) * scale
        grad_key = (grad_scores.transpose(-1, -2) @ query) * scale
        return grad_query, grad_key, grad_value, _reduce_to(grad_gate, gate), None, None, None, None, None


def _softmax_with_gate(scores: Tensor, gate: Tensor, relaxation: Relaxation, c: float) -> Tensor:
    """What is saved: softmax(S) of the multiplicative form, A of the additive one, exp(S)/Z of the log form."""
    if relaxation == "multiplicative":
        return _safe_softmax(scores)
    if relaxation == "additive":
        return _safe_softmax(scores - c * (1 - gate))
    total = torch.logsumexp(scores + gate.log(), dim=-1, keepdim=True)
    # A row with no kept key has total -inf: its scores become -inf too, and its weights zero.
    exponent = (scores - total).nan_to_num_(nan=-torch.inf, posinf=-torch.inf, neginf=-torch.inf)
    return exponent.clamp_(max=_HIGHEST_EXPONENT).exp_()


def _safe_softmax(scores: Tensor) -> Tensor:
    return torch.softmax(scores, dim=-1).nan_to_num_(nan=0.0)  # NaN only where a whole row is excluded


def _softmax_backward(
    grad_weights: Tensor, weights: Tensor, base: Tensor, gate: Tensor, relaxation: Relaxation, c: float
) -> tuple[Tensor, Tensor]:
    if relaxation == "multiplicative":
        grad_base = grad_weights * gate
        grad_scores = base * (grad_base - (grad_base * base).sum(-1, keepdim=True))
        return grad_scores, base * grad_weights
    centred = grad_weights - (grad_weights * weights).sum(-1, keepdim=True)
    grad_scores = weights * centred
    return grad_scores, c * grad_scores if relaxation == "additive" else base * centred


def _reduce_to(grad: Tensor, gate: Tensor) -> Tensor:
    """Summed over the dimensions along which the gate was spread."""
    spread = [d for d in range(4) if gate.shape[d] == 1 and grad.shape[d] != 1]
    return grad.sum(spread, keepdim=True) if spread else grad


def _selected(values: Tensor, inputs: Inputs) -> Float[Tensor, "batch_or_1 heads_or_1 n n"]:
    n, positions = inputs.length, values.shape[-1]
    if not inputs.anchored_to_token or (inputs.lengths is None and n == positions):
        return values[None, :, :n, :n]
    batch = inputs.query.shape[0]
    last = torch.full((batch,), n) if inputs.lengths is None else inputs.lengths
    places = torch.arange(n, device=values.device).repeat(batch, 1)
    places.scatter_(1, (last.to(values.device) - 1).clamp(min=0)[:, None], positions - 1)
    return values[:, places[:, :, None], places[:, None, :]].transpose(0, 1)


def _excluded(inputs: Inputs) -> Bool[Tensor, "..."] | None:
    """Outside the pattern, or key or query padded; None where nothing is."""
    excluded = None
    if inputs.pattern is not None and inputs.pattern.kept < inputs.pattern.heads * inputs.pattern.length**2:
        excluded = ~_selected(inputs.pattern.keep().to(inputs.query.device), inputs)
    if inputs.lengths is not None:
        padded = (
            torch.arange(inputs.length, device=inputs.query.device) >= inputs.lengths.to(inputs.query.device)[:, None]
        )
        outside = padded[:, None, None, :] | padded[:, None, :, None]
        excluded = outside if excluded is None else excluded | outside
    return excluded
