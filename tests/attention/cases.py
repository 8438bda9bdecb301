"""Random attention problems, and the float64 oracle's answer to them, forward and backward."""

from dataclasses import dataclass
from typing import Any

import torch
from hypothesis import strategies as st
from torch import Tensor

from sparsebert import attend, patterns
from sparsebert.patterns import Pattern


@dataclass(frozen=True)
class Case:
    """One problem: float64 tensors drawn from `seed`, laid out as `layout` says."""

    batch: int
    heads: int
    length: int
    width: int
    pattern: Pattern | None
    lengths: tuple[int, ...] | None
    layout: str
    seed: int

    def tensors(self, dtype: torch.dtype) -> list[Tensor]:
        """Query, key, value and the gradient of the output."""
        generator = torch.Generator().manual_seed(self.seed)
        shape = (self.batch, self.heads, self.length, self.width)
        return [
            self._laid_out(torch.randn(shape, generator=generator, dtype=torch.float64)).to(dtype) for _ in range(4)
        ]

    def _laid_out(self, tensor: Tensor) -> Tensor:
        if self.layout == "bert":  # [B, n, H, d] seen as [B, H, n, d]
            return tensor.transpose(1, 2).contiguous().transpose(1, 2)
        if self.layout == "gaps":
            return torch.stack([tensor, tensor], dim=-1)[..., 0]
        return tensor

    def length_tensor(self) -> Tensor | None:
        return None if self.lengths is None else torch.tensor(self.lengths)


@st.composite
def random_patterns(draw: st.DrawFn, length: int, heads: int) -> Pattern:
    """Any sparsity, from nothing kept to everything, per head or one for all, anchored either way."""
    pattern_heads = draw(st.sampled_from([1, heads]))
    sparsity = draw(st.sampled_from([0.0, 0.3, 0.7, 0.9, 0.97, 1.0]))
    pattern = patterns.random(length, pattern_heads, sparsity=sparsity, seed=draw(st.integers(0, 999)))
    if draw(st.booleans()):
        pattern = pattern | patterns.border(length)
    if draw(st.booleans()):
        pattern = pattern.without_diagonal()
    return pattern.anchored(draw(st.sampled_from(["position", "token"])))


@st.composite
def attention_cases(draw: st.DrawFn, longest: int = 160, widths: tuple[int, ...] = (8, 5, 16)) -> Case:
    length = draw(st.one_of(st.integers(1, 12), st.integers(1, longest)))
    heads = draw(st.integers(1, 12))
    batch = draw(st.integers(1, 3))
    longer = length + draw(st.sampled_from([0, 0, 1, 7]))
    pattern = draw(st.none() | random_patterns(longer, heads))
    lengths = draw(st.none() | st.tuples(*[st.integers(0, length)] * batch))
    layout = draw(st.sampled_from(["plain", "bert", "gaps"]))
    return Case(
        batch, heads, length, draw(st.sampled_from(widths)), pattern, lengths, layout, draw(st.integers(0, 999))
    )


def answers(case: Case, backend: str, dtype: torch.dtype, **settings: Any) -> list[Tensor]:
    """Output and the gradients of query, key and value, in float64."""
    *leaves, grad = case.tensors(dtype)
    leaves = [leaf.requires_grad_() for leaf in leaves]
    output = attend(*leaves, pattern=case.pattern, lengths=case.length_tensor(), backend=backend, **settings)
    gradients = torch.autograd.grad(output, leaves, grad, materialize_grads=True)
    return [answer.detach().double() for answer in (output, *gradients)]


def rounding(oracle: Tensor, dtype: torch.dtype, terms: int) -> float:
    """What rounding alone may cost: eps times the largest value times the root of the number of terms, with room."""
    return 16 * torch.finfo(dtype).eps * max(1.0, float(oracle.abs().max())) * max(1, terms) ** 0.5
