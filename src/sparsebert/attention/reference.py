"""The oracle: attention written as its definition, in whatever precision it is given. Shares no code with the others.

Everything is dense and unhurried; the fast backends are judged by this one in float64.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from sparsebert.attention.inputs import Inputs


def attend_reference(inputs: Inputs) -> Float[Tensor, "batch heads n d"]:
    """softmax over the kept, real keys; zeros for a query that has none."""
    weights = attention_weights(inputs)
    if inputs.dropout > 0:
        weights = torch.nn.functional.dropout(weights, inputs.dropout)
    return weights @ inputs.value


def attention_weights(inputs: Inputs) -> Float[Tensor, "batch heads n n"]:
    """Rows sum to one, or to zero where a query has nothing to attend to (or a multiplicative gate took a share)."""
    allowed = _allowed(inputs)
    scores = inputs.scale * (inputs.query @ inputs.key.transpose(-1, -2))
    if inputs.bias is not None:
        scores = scores + _selected(_dense_bias(inputs), inputs)
    if inputs.gate is None:
        return _normalised(scores, allowed.to(scores))
    gate = _selected(inputs.gate.values, inputs)
    if inputs.gate.relaxation == "multiplicative":  # Eq. (4)
        return gate * _normalised(scores, allowed.to(scores))
    if inputs.gate.relaxation == "additive":  # Eqs. (5) and (6)
        return _normalised(scores - inputs.gate.c * (1 - gate), allowed.to(scores))
    return _normalised(scores, gate * allowed)  # bias log P, written so that P = 0 has a value and a gradient


def _normalised(scores: Float[Tensor, "..."], share: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """share * exp(score), divided by its row's sum; a row whose sum is zero stays zero."""
    if scores.numel() == 0:
        return share * scores
    highest = scores.masked_fill(share == 0, -torch.inf).amax(-1, keepdim=True)
    highest = torch.where(highest.isfinite(), highest, torch.zeros_like(highest)).detach()
    # Entries with share 0 may lie far above the kept ones; bounding them keeps their gradient finite.
    unnormalised = share * torch.exp((scores - highest).clamp(max=60.0))
    total = unnormalised.sum(-1, keepdim=True)
    # Divided by infinity, a row with nothing to attend to is zero and so is its gradient.
    return unnormalised / torch.where(total > 0, total, torch.full_like(total, torch.inf))


def _allowed(inputs: Inputs) -> Bool[Tensor, "batch heads n n"]:
    """Kept by the pattern, key real, query real."""
    batch, heads, n, _ = inputs.query.shape
    keep = torch.ones(1, n, n, dtype=torch.bool) if inputs.pattern is None else inputs.pattern.keep()
    allowed = _selected(keep.to(inputs.query.device), inputs).expand(batch, heads, n, n).clone()
    for example, real in enumerate(_real_tokens(inputs)):
        allowed[example, :, real:, :] = False
        allowed[example, :, :, real:] = False
    return allowed


def _selected(table: Tensor, inputs: Inputs) -> Tensor:
    """The part of an [heads, positions, positions] table that each example uses, [batch or 1, heads, n, n]."""
    n = inputs.length
    if not inputs.anchored_to_token:
        return table[None, :, :n, :n]
    last = table.shape[-1] - 1
    examples = []
    for real in _real_tokens(inputs):
        # The true last token plays the part of the pattern's last position.
        positions = torch.arange(n)
        positions[max(real - 1, 0) :][:1] = last
        examples.append(table[:, positions][:, :, positions])
    return torch.stack(examples) if examples else table[None, :, :n, :n]


def _real_tokens(inputs: Inputs) -> list[int]:
    batch, _, n, _ = inputs.query.shape
    return [n] * batch if inputs.lengths is None else [int(length) for length in inputs.lengths]


def _dense_bias(inputs: Inputs) -> Float[Tensor, "heads positions positions"]:
    """The bias of each kept entry at its place, zeros elsewhere."""
    assert inputs.pattern is not None
    assert inputs.bias is not None
    pattern, size = inputs.pattern, inputs.pattern.length
    if inputs.bias.ndim == 2:
        places = torch.from_numpy(pattern.entries())
        flat = inputs.bias.new_zeros(inputs.heads, size * size)
        rows = torch.arange(inputs.heads)[:, None]
        return torch.index_put(flat, (rows, places[None]), inputs.bias).view(inputs.heads, size, size)
    places = torch.cat([head * size * size + torch.from_numpy(pattern.entries(head)) for head in range(pattern.heads)])
    flat = inputs.bias.new_zeros(pattern.heads * size * size)
    return torch.index_put(flat, (places,), inputs.bias).view(pattern.heads, size, size)
